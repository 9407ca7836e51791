//! Terminals: opening one, and making a program its leader.
//!
//! Only unsafe code could run between fork and exec. So the program under test is started through
//! the runner's own program: called with [`ARGUMENT`], it takes the terminal and then turns into
//! the shell.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Winsize, tcgetattr,
    tcsetattr, tcsetwinsize,
};

use crate::test::{Cancel, Outcome};

/// First argument when this program has to take a terminal. It is followed by terminal, lines,
/// columns, shell line.
pub const ARGUMENT: &str = "--in-terminal";

/// A new terminal: the runner's end of it, and the name of the other.
///
/// # Errors
/// The system has none left.
pub fn open() -> std::io::Result<(File, PathBuf)> {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ptsname_r(&master)?;
    let ours = std::os::fd::AsFd::as_fd(&master).try_clone_to_owned()?;
    Ok((File::from(ours), slave.into()))
}

/// Sets the size of a terminal.
///
/// # Errors
/// It is not a terminal.
pub fn resize(terminal: impl AsFd, (lines, columns): (u16, u16)) -> std::io::Result<()> {
    let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).map_err(Into::into)
}

/// Waits for the byte that reports that the terminal has been taken; false if it was not.
///
/// # Errors
/// The thread must stop.
pub fn wait_until_ready(errors: &mut PipeReader, cancel: &Cancel) -> Outcome<bool> {
    cancel.readable(errors.as_fd(), None)?;
    let mut byte = [0];
    Ok(matches!(errors.read(&mut byte), Ok(1)) && byte[0] == b'+')
}

/// Takes the terminal and becomes the shell; returns only if that failed, with the exit status.
#[must_use]
pub fn lead(arguments: &[OsString]) -> i32 {
    let [terminal, lines, columns, line] = arguments else {
        eprintln!("{ARGUMENT}: only the test runner starts this");
        return 2;
    };
    let number = |text: &OsString| text.to_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    match take(terminal, (number(lines), number(columns))) {
        Ok(()) => {}
        Err(error) => {
            eprintln!("{}: {error}", terminal.to_string_lossy());
            return 1;
        }
    }
    let _ = std::io::stderr().write_all(b"+");
    let error = Command::new("/bin/sh").arg("-c").arg(line).env("TERM", "xterm").env_remove("TERMCAP").exec();
    eprintln!("/bin/sh: {error}");
    1
}

fn take(terminal: &OsString, size: (u16, u16)) -> std::io::Result<()> {
    rustix::process::setsid()?;
    let slave = OpenOptions::new().read(true).write(true).open(terminal)?;
    rustix::process::ioctl_tiocsctty(&slave)?;
    resize(&slave, size)?;
    let mut modes = tcgetattr(&slave)?;
    modes.control_modes = ControlModes::CREAD | ControlModes::CS8 | ControlModes::HUPCL;
    modes.input_modes =
        InputModes::BRKINT | InputModes::ICRNL | InputModes::IMAXBEL | InputModes::IXON | InputModes::IXANY;
    modes.local_modes = LocalModes::ICANON
        | LocalModes::ISIG
        | LocalModes::IEXTEN
        | LocalModes::ECHO
        | LocalModes::ECHOE
        | LocalModes::ECHOKE
        | LocalModes::ECHOCTL;
    modes.output_modes = OutputModes::OPOST | OutputModes::ONLCR;
    modes.special_codes[SpecialCodeIndex::VEOF] = 0x04;
    modes.special_codes[SpecialCodeIndex::VERASE] = 0x08;
    modes.special_codes[SpecialCodeIndex::VKILL] = 0x15;
    modes.special_codes[SpecialCodeIndex::VINTR] = 0x03;
    modes.special_codes[SpecialCodeIndex::VQUIT] = 0x1c;
    modes.set_speed(9600)?;
    tcsetattr(&slave, OptionalActions::Flush, &modes)?;
    rustix::stdio::dup2_stdin(&slave)?;
    rustix::stdio::dup2_stdout(&slave)?;
    Ok(())
}
