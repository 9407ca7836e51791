//! Shell completions of `copal` with its commands, and of the stock program names.
//!
//! The candidates for a value are derived from its form in the rows: `<a|b>` is one of these words,
//! `<file>` a file, `<dir>` a folder, `<taglist>` a log tag, `<parameter>=` a parameter.

use crate::cli::COMMANDS;
use crate::parameter::PARAMETERS;
use crate::program::{OptionRow, PROGRAMS, Program, parts};
use crate::tag::TAGS;
use std::fmt::Write;

/// Candidates for a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Free text without candidates.
    Free,
    /// One of these words.
    Words(Vec<String>),
    File,
    Directory,
}

pub(super) fn value(argument: &str) -> Value {
    if argument.contains("<dir>") || argument.contains("<folder>") {
        return Value::Directory;
    }
    if argument.starts_with('<') && argument.contains("file") {
        return Value::File;
    }
    if argument.starts_with("<taglist>") {
        return Value::Words(TAGS.iter().map(|row| row.name.to_owned()).collect());
    }
    if argument.starts_with("<parameter>") {
        let equals = if argument.contains('=') { "=" } else { "" };
        return Value::Words(PARAMETERS.iter().map(|row| format!("{}{equals}", row.name)).collect());
    }
    let is_list = argument.contains('|') && !argument.contains([',', '[']);
    let (key, list) = argument.split_once('=').map_or(("", argument), |(key, list)| (key, list));
    let inner = list.strip_prefix('<').and_then(|inner| inner.strip_suffix('>')).unwrap_or(list);
    let words: Vec<String> = inner
        .split('|')
        .filter(|word| is_list && !word.is_empty() && !word.contains(['<', '>', '/', ':']))
        .map(|word| if key.is_empty() { word.to_owned() } else { format!("{key}={word}") })
        .collect();
    if words.is_empty() { Value::Free } else { Value::Words(words) }
}

/// Candidates for the value of an option, over all its forms.
fn values(program: &Program, letter: char) -> Value {
    let mut words = Vec::new();
    for row in program.options().filter(|row| row.letter == letter) {
        match value(row.argument) {
            Value::Words(more) => words.extend(more),
            Value::Free => {}
            path => return path,
        }
    }
    if words.is_empty() { Value::Free } else { Value::Words(words) }
}

/// The options of a program, the first form of each.
fn options(program: &'static Program) -> Vec<&'static OptionRow> {
    let mut rows: Vec<&OptionRow> = program.options().collect();
    rows.dedup_by_key(|row| row.letter);
    rows
}

/// Spellings: with one dash and with two.
fn spellings(row: &OptionRow) -> Vec<String> {
    let letter = row.is_letter.then(|| format!("-{}", row.letter));
    letter.into_iter().chain(row.word.map(|word| format!("--{word}"))).collect()
}

/// Candidates for the operands after the options.
fn operands(program: &Program) -> Value {
    if program.part == "adm" {
        return Value::Words(COMMANDS.iter().filter(|row| !row.hidden).map(|row| row.verb.to_owned()).collect());
    }
    let commands: Vec<String> = subcommands(program).map(|(name, _)| name.to_owned()).collect();
    if !commands.is_empty() {
        return Value::Words(commands);
    }
    if program.rest.contains("<file>") { Value::File } else { Value::Free }
}

/// Subcommands of a command, with their summaries.
fn subcommands(program: &Program) -> impl Iterator<Item = (&'static str, &'static str)> {
    PROGRAMS.iter().filter_map(|other| {
        let (part, name) = other.part.split_once(' ')?;
        (part == program.part).then_some((name, other.line))
    })
}

const HEAD: &str = "# Written from the tables of crates/surface: REFERENCE_UPDATE=1 cargo test -p surface\n";

/// The script for bash.
pub(super) fn bash() -> String {
    let mut out = HEAD.to_owned();
    out.push_str(
        "
# The options of a part, then the kind of what may follow: a word of compgen, or -W and words.
_copal_options() {
    case $1 in
",
    );
    for program in PROGRAMS {
        let spelled: Vec<String> = options(program).into_iter().flat_map(spellings).collect();
        let _ = writeln!(out, "    '{}') echo '{}' ;;", program.part, spelled.join(" "));
    }
    out.push_str("    esac\n}\n\n_copal_value() {\n    case \"$1 $2\" in\n");
    for program in PROGRAMS {
        for row in options(program).into_iter().filter(|row| !row.argument.is_empty()) {
            let patterns: Vec<String> =
                spellings(row).iter().map(|spelled| format!("'{} {spelled}'", program.part)).collect();
            let _ = writeln!(out, "    {}) {} ;;", patterns.join("|"), bash_value(&values(program, row.letter)));
        }
    }
    out.push_str("    *) return 1 ;;\n    esac\n}\n\n_copal_operand() {\n    case $1 in\n");
    for program in PROGRAMS {
        let _ = writeln!(out, "    '{}') {} ;;", program.part, bash_value(&operands(program)));
    }
    let names: Vec<&str> = parts().map(|program| program.part).collect();
    out.push_str(
        "    esac\n}\n\n_copal() {\n    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n",
    );
    out.push_str("    local first=1 part kind\n    COMPREPLY=()\n    case ${COMP_WORDS[0]##*/} in\n");
    for program in parts() {
        if let Some(stock) = program.stock {
            let _ = writeln!(out, "    {stock}) part={} ;;", program.part);
        }
    }
    let _ = writeln!(
        out,
        "    *)
        if ((COMP_CWORD == 1)) || [[ $COMP_CWORD == 2 && ${{COMP_WORDS[1]}} == help ]]; then
            mapfile -t COMPREPLY < <(compgen -W '{} help --help --version' -- \"$current\")
            return
        fi
        part=${{COMP_WORDS[1]}} first=2
        if ((COMP_CWORD > 2)) && [[ -n $(_copal_options \"$part ${{COMP_WORDS[2]}}\") ]]; then
            part+=\" ${{COMP_WORDS[2]}}\"
        fi
        ;;
    esac
    if ((COMP_CWORD > first)) && kind=$(_copal_value \"$part\" \"$before\"); then
        :
    elif [[ $current == -* ]]; then
        kind=\"-W $(_copal_options \"$part\")\"
    else
        kind=$(_copal_operand \"$part\")
    fi
    case $kind in
    -W*) mapfile -t COMPREPLY < <(compgen -W \"${{kind#-W }}\" -- \"$current\") ;;
    -?) mapfile -t COMPREPLY < <(compgen \"$kind\" -- \"$current\") ;;
    esac
    [[ ${{#COMPREPLY[@]}} == 1 && ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
    return 0
}}
",
        names.join(" ")
    );
    let stock: Vec<&str> = parts().filter_map(|program| program.stock).collect();
    let _ = writeln!(out, "complete -o filenames -F _copal copal {}", stock.join(" "));
    out
}

fn bash_value(value: &Value) -> String {
    match value {
        Value::Free => "echo none".to_owned(),
        Value::Words(words) => format!("echo '-W {}'", words.join(" ")),
        Value::File => "echo -f".to_owned(),
        Value::Directory => "echo -d".to_owned(),
    }
}

/// The script for zsh.
pub(super) fn zsh() -> String {
    let stock: Vec<&str> = parts().filter_map(|program| program.stock).collect();
    let mut out = format!("#compdef copal {}\n{HEAD}\n", stock.join(" "));
    for program in PROGRAMS {
        let _ = writeln!(out, "{}() {{\n    _arguments -s \\", function(program));
        for row in options(program) {
            let again = if row.argument.is_empty() { "" } else { "*" };
            let value = if row.argument.is_empty() {
                String::new()
            } else {
                format!(":value:{}", zsh_value(&values(program, row.letter)))
            };
            let text = quoted(row.text.split(". ").next().unwrap_or_default());
            for spelled in spellings(row) {
                let _ = writeln!(out, "        '{again}{spelled}[{text}]{value}' \\");
            }
        }
        match subcommands(program).next() {
            None => {
                let _ = writeln!(out, "        '*:argument:{}'\n}}\n", zsh_value(&operands(program)));
            }
            Some(_) => {
                out.push_str("        '1:command:->command' '*::argument:->argument' && return\n    case $state in\n");
                out.push_str("    command) _values command");
                for (name, line) in subcommands(program) {
                    let _ = write!(out, " '{name}[{}]'", quoted(line));
                }
                let _ = writeln!(out, " ;;\n    argument) _copal_{}_${{words[1]}} ;;\n    esac\n}}\n", program.part);
            }
        }
    }
    out.push_str("_copal_parts() {\n    _values part \\\n");
    for program in parts() {
        let _ = writeln!(out, "        '{}[{}]' \\", program.part, quoted(program.line));
    }
    out.push_str("        'help[options of a part]'\n}\n\ncase ${service:-copal} in\n");
    for program in parts() {
        if let Some(stock) = program.stock {
            let _ = writeln!(out, "{stock}) {} ;;", function(program));
        }
    }
    out.push_str(
        "*)
    local state line
    _arguments '1:part:_copal_parts' '*::argument:->argument' && return
    case $words[1] in
    help) _copal_parts ;;
    *) (( $+functions[_copal_$words[1]] )) && _copal_$words[1] ;;
    esac
    ;;
esac
",
    );
    out
}

/// The name of the function that completes a program.
fn function(program: &Program) -> String {
    format!("_copal_{}", program.part.replace(' ', "_"))
}

fn zsh_value(value: &Value) -> String {
    match value {
        Value::Free => " ".to_owned(),
        Value::Words(words) => format!("({})", words.join(" ")),
        Value::File => "_files".to_owned(),
        Value::Directory => "_files -/".to_owned(),
    }
}

/// Escapes text for use between quotes and brackets.
fn quoted(text: &str) -> String {
    text.trim_end_matches('.').replace('\\', "\\\\").replace('\'', "'\\''").replace(['[', ']'], "").replace(':', "\\:")
}

/// The script for fish.
pub(super) fn fish() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\ncomplete -c copal -f\n");
    for program in parts() {
        let _ = writeln!(
            out,
            "complete -c copal -n __fish_use_subcommand -a {} -d '{}'",
            program.part,
            fish_quoted(program.line)
        );
    }
    out.push_str("complete -c copal -n __fish_use_subcommand -a help -d 'the options of a part'\n");
    out.push_str("complete -c copal -n __fish_use_subcommand -s h -l help -d 'the list of the parts'\n");
    out.push_str("complete -c copal -n __fish_use_subcommand -s V -l version -d 'the version'\n");
    let names: Vec<&str> = parts().map(|program| program.part).collect();
    let _ = writeln!(out, "complete -c copal -n '__fish_seen_subcommand_from help' -a '{}'", names.join(" "));
    for program in PROGRAMS {
        let _ = writeln!(out, "\n# copal {}", program.part);
        let seen: Vec<String> =
            program.part.split(' ').map(|word| format!("__fish_seen_subcommand_from {word}")).collect();
        of_program(&format!("copal -n '{}'", seen.join("; and ")), program, &mut out);
        if let Some(stock) = program.stock {
            let _ = writeln!(out, "complete -c {stock} -f");
            of_program(stock, program, &mut out);
        }
    }
    out
}

fn of_program(command: &str, program: &'static Program, out: &mut String) {
    for row in options(program) {
        let letter = if row.is_letter { format!(" -s {}", fish_letter(row.letter)) } else { String::new() };
        let word = row.word.map(|word| format!(" -l {word}")).unwrap_or_default();
        let value = if row.argument.is_empty() {
            String::new()
        } else {
            format!(" -x{}", fish_value(&values(program, row.letter)))
        };
        let _ = writeln!(out, "complete -c {command}{letter}{word}{value} -d '{}'", fish_quoted(row.text));
    }
    let value = fish_value(&operands(program));
    if !value.is_empty() {
        let _ = writeln!(out, "complete -c {command}{value}");
    }
}

fn fish_letter(letter: char) -> String {
    if letter.is_ascii_alphanumeric() { letter.to_string() } else { format!("'{letter}'") }
}

fn fish_value(value: &Value) -> String {
    match value {
        Value::Free => String::new(),
        Value::Words(words) => format!(" -a '{}'", words.join(" ")),
        Value::File => " -a '(__fish_complete_path)'".to_owned(),
        Value::Directory => " -a '(__fish_complete_directories)'".to_owned(),
    }
}

fn fish_quoted(text: &str) -> String {
    text.trim_end_matches('.').replace('\\', "\\\\").replace('\'', "\\'")
}
