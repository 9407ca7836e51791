//! Samples of a run, their plots, and the verdict.

use super::clients::{Account, TRANSPORTS};
use crate::place::median;
use crate::plot::{Frame, Line, draw, round_top, short};
use crate::process::memory_bytes;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Ratio of end to beginning up to which growth is tolerated.
const GROWTH_MAX: f64 = 1.2;
/// Fewest samples for a verdict on growth.
const SAMPLES_MIN: usize = 100;
/// Limit of the daemon's own messages, in bytes.
const MESSAGES_BYTES_MAX: u64 = 16 << 20;

/// One moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    hours: f64,
    memory_bytes: f64,
    descriptors: f64,
    threads: f64,
    p50: f64,
    p99: f64,
    answers: f64,
    messages_bytes: u64,
}

/// A value of a sample.
type Of = fn(&Sample) -> f64;

/// A value that must not grow.
struct Watched {
    name: &'static str,
    of: Of,
    /// Unit of the value.
    unit: f64,
    /// Tolerated fluctuation, in units: threads of a pool, connections.
    slack: f64,
}

const WATCHED: [Watched; 3] = [
    Watched { name: "memory, MiB", of: |sample| sample.memory_bytes, unit: 1_048_576.0, slack: 8.0 },
    Watched { name: "descriptors", of: |sample| sample.descriptors, unit: 1.0, slack: 32.0 },
    Watched { name: "threads", of: |sample| sample.threads, unit: 1.0, slack: 16.0 },
];

/// A plot: the end of its file's name, its title, its lines, and a value as text.
type Plot<'a> = (&'a str, &'a str, Vec<Line<'a>>, fn(f64) -> String);

/// The samples of a run.
#[derive(Default)]
pub struct Samples {
    all: Vec<Sample>,
    answers_before: u64,
    seconds_before: f64,
}

impl Samples {
    /// Takes a sample of the processes, and of the clients' results since the last one.
    pub fn take(&mut self, elapsed: Duration, pids: &[u32], log: &Path, account: &Account) {
        let times = account.times.lock().map(|mut times| std::mem::take(&mut *times)).unwrap_or_default();
        let answers = account.answers.load(Ordering::Relaxed);
        let seconds = elapsed.as_secs_f64();
        let count = |folder: &str| -> f64 {
            pids.iter()
                .map(|pid| std::fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count))
                .sum::<usize>() as f64
        };
        let sample = Sample {
            hours: seconds / 3600.0,
            memory_bytes: memory_bytes(pids) as f64,
            descriptors: count("fd"),
            threads: count("task"),
            p50: times.at(0.5),
            p99: times.at(0.99),
            answers: (answers - self.answers_before) as f64 / (seconds - self.seconds_before).max(1e-9),
            messages_bytes: std::fs::metadata(log).map_or(0, |data| data.len()),
        };
        (self.answers_before, self.seconds_before) = (answers, seconds);
        println!(
            "{seconds:>7.0} s {answers:>10} answers {:>7.0}/s  p99 {:>8.0} µs  {} broken  {} wrong  {:>6.1} MiB  {} descriptors  {} threads",
            sample.answers,
            sample.p99,
            account.broken.load(Ordering::Relaxed),
            account.wrong.load(Ordering::Relaxed),
            sample.memory_bytes / f64::from(1 << 20),
            sample.descriptors,
            sample.threads,
        );
        self.all.push(sample);
    }

    /// Writes the plots.
    pub fn draw(&self, title: &str, out: &Path) -> Result<(), String> {
        if self.all.len() < 2 {
            return Ok(());
        }
        std::fs::create_dir_all(out).map_err(|error| error.to_string())?;
        let line =
            |of: fn(&Sample) -> f64| self.all.iter().map(|sample| (sample.hours, of(sample))).collect::<Vec<_>>();
        let plots: [Plot<'_>; 4] = [
            ("memory", "memory", vec![("resident", line(|sample| sample.memory_bytes))], |bytes| {
                format!("{:.0}M", bytes / f64::from(1 << 20))
            }),
            (
                "descriptors",
                "descriptors and threads",
                vec![("descriptors", line(|sample| sample.descriptors)), ("threads", line(|sample| sample.threads))],
                short,
            ),
            (
                "latency",
                "latency",
                vec![("99 of 100", line(|sample| sample.p99)), ("half", line(|sample| sample.p50))],
                |us| format!("{:.1}ms", us / 1000.0),
            ),
            ("throughput", "answers a second", vec![("answers", line(|sample| sample.answers))], short),
        ];
        for (name, what, lines, height) in plots {
            let title = format!("{title}: {what}");
            let place =
                |hours: f64| if hours >= 1.0 { format!("{hours:.1} h") } else { format!("{:.0} min", hours * 60.0) };
            let top = round_top(&lines);
            let frame = Frame { title: &title, below: "time", is_logarithmic: false, top, height, place };
            let path = out.join(format!("soak-{name}.svg"));
            std::fs::write(&path, draw(&frame, &lines)).map_err(|error| format!("{}: {error}", path.display()))?;
            println!("{}", path.display());
        }
        Ok(())
    }

    /// Medians of the seventh tenth, when the last worker has settled, and of the last one.
    fn ends(&self, of: Of) -> Option<(f64, f64)> {
        let tenth = self.all.len() / 10;
        let of_part = |part: &[Sample]| median(part.iter().map(of));
        if tenth == 0 {
            None
        } else {
            of_part(&self.all[6 * tenth..7 * tenth]).zip(of_part(&self.all[self.all.len() - tenth..]))
        }
    }

    /// The results, as Markdown.
    pub fn table(&self, account: &Account, operations: u64) -> String {
        let count = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
        let mut text = String::from("| what | how much |\n| --- | --- |\n");
        let answers = count(&account.answers);
        let _ = writeln!(text, "| answers, all of them right | {answers} |");
        for (transport, number) in TRANSPORTS.iter().zip(&account.by_transport) {
            let _ = writeln!(text, "| over {} | {} |", transport.name, count(number));
        }
        let _ =
            writeln!(text, "| of them hits | {:.1} % |", 100.0 * count(&account.hits) as f64 / answers.max(1) as f64);
        let _ = writeln!(text, "| wrong | {} |", count(&account.wrong));
        let _ = writeln!(text, "| workers killed | {} |", count(&account.kills));
        let _ = writeln!(text, "| broken off | {} |", count(&account.broken));
        let _ = writeln!(text, "| 503 although the origin was well | {} |", count(&account.unavailable));
        let refused = count(&account.operation_failures);
        let _ = writeln!(text, "| VCLs exchanged and bans; of them refused | {operations}; {refused} |");
        for Watched { name: what, of, unit, .. } in WATCHED {
            if let Some((begin, end)) = self.ends(of) {
                let _ = writeln!(
                    text,
                    "| {what}: in the seventh tenth and in the last | {:.1}, {:.1} |",
                    begin / unit,
                    end / unit
                );
            }
        }
        let messages = self.all.last().map_or(0, |sample| sample.messages_bytes);
        let _ = writeln!(text, "| the daemon's messages, bytes | {messages} |");
        text
    }

    /// Checks the limits.
    pub fn judge(&self, account: &Account) -> Result<(), String> {
        let wrong = account.wrong.load(Ordering::Relaxed);
        if wrong > 0 {
            return Err(format!("{wrong} answers were wrong"));
        }
        for (transport, number) in TRANSPORTS.iter().zip(&account.by_transport) {
            if number.load(Ordering::Relaxed) == 0 {
                return Err(format!("nothing was answered over {}", transport.name));
            }
        }
        let messages = self.all.last().map_or(0, |sample| sample.messages_bytes);
        if messages > MESSAGES_BYTES_MAX {
            return Err(format!("the daemon wrote {messages} bytes of messages"));
        }
        if self.all.len() >= SAMPLES_MIN {
            for Watched { name: what, of, unit, slack } in WATCHED {
                if let Some((begin, end)) =
                    self.ends(of).filter(|(begin, end)| *end > begin * GROWTH_MAX + slack * unit)
                {
                    return Err(format!("{what}: grew from {:.1} to {:.1}", begin / unit, end / unit));
                }
            }
        }
        println!("every body was right");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(memory: impl Fn(usize) -> f64) -> Result<(), String> {
        let all =
            (0..200).map(|at| Sample { memory_bytes: memory(at), descriptors: 9.0, threads: 4.0, ..Sample::default() });
        let account = Account::default();
        account.by_transport.iter().for_each(|number| number.store(1, Ordering::Relaxed));
        Samples { all: all.collect(), ..Samples::default() }.judge(&account)
    }

    #[test]
    fn growth_is_a_fault_and_waves_are_not() {
        assert_eq!(run(|at| 1e8 + if at % 3 == 0 { 3e7 } else { 0.0 }), Ok(()));
        assert_eq!(run(|at| if at < 110 { 1e7 } else { 1e8 }), Ok(()), "what fills up at first is not counted");
        assert!(run(|at| 1e8 + at as f64 * 1e6).unwrap_err().contains("memory, MiB: grew"));
    }

    #[test]
    fn a_wrong_answer_or_a_silent_transport_is_a_fault() {
        let account = Account::default();
        assert!(Samples::default().judge(&account).unwrap_err().contains("HTTP/1.1"));
        account.wrong.store(1, Ordering::Relaxed);
        assert!(Samples::default().judge(&account).unwrap_err().contains("1 answers were wrong"));
    }
}
