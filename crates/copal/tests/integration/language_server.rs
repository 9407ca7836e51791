//! `copal lsp`, driven by a client in Python that speaks the protocol by itself.

use std::process::Command;

#[test]
fn an_editor_gets_answers_and_hostile_messages_end_nothing() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: needs python3");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lsp/client.py");
    let run =
        Command::new("python3").args([client, env!("CARGO_BIN_EXE_copal")]).arg(directory.path()).output().unwrap();
    let (output, error) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    println!("{output}");
    assert!(run.status.success() && output.ends_with("done\n"), "{output}\n{error}");
}
