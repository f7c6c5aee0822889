//! The question before existing data is overwritten.

use crate::node::Consent;
use std::io::{self, BufRead, Write};
use std::path::Path;
use storage::salvage::{self, Questions};

/// How the user was told to treat data that is there.
pub enum Answer {
    /// `-force`
    Force,
    /// `-nonInteractive`
    Never,
    /// Ask on the terminal.
    Ask,
}

impl Consent for Answer {
    fn overwrite(&mut self, shown: &str) -> io::Result<bool> {
        match self {
            Answer::Force => eprintln!("Data exists in {shown}. Formatting anyway."),
            Answer::Never => {
                eprintln!("Running in non-interactive mode, and data appears to exist in {shown}. Not formatting.");
                return Ok(false);
            }
            Answer::Ask => {
                let question = format!("Re-format filesystem in {shown} ?");
                if !confirm(&question, &mut io::stdin().lock(), &mut io::stderr())? {
                    eprintln!("Format aborted in {shown}");
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// The questions of a recovery: on the terminal, or answered with the first choice.
pub struct Choices {
    /// Whether the first choice is taken from now on.
    pub always: bool,
}

impl Questions for Choices {
    fn tell(&mut self, path: &Path, reason: &str) {
        tracing::error!("{}: {reason}", path.display());
    }

    /// Quirk: the_end_of_the_input_quits: Hadoop asks again for ever
    fn ask(&mut self, problem: &str, going_on: &str) -> salvage::Answer {
        tracing::error!("{problem}");
        let choice = choose(self.always, going_on, &mut io::stdin().lock(), &mut io::stderr());
        match choice.unwrap_or('q') {
            'c' => salvage::Answer::Continue,
            's' => salvage::Answer::Stop,
            'a' => {
                self.always = true;
                salvage::Answer::Continue
            }
            _ => salvage::Answer::Quit,
        }
    }
}

/// Asks until one of the letters is typed, in any case.
fn choose(always: bool, going_on: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<char> {
    loop {
        write!(
            output,
            "\nEnter 'c' to continue, {going_on}\nEnter 's' to stop reading the edit log here, abandoning any later edits\n\
             Enter 'q' to quit without saving\nEnter 'a' to always select the first choice in the future without prompting. (c/s/q/a)\n"
        )?;
        if always {
            writeln!(output, "automatically choosing c")?;
            return Ok('c');
        }
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok('q');
        }
        match line.trim_end_matches(['\r', '\n']).to_ascii_lowercase().as_str() {
            "c" => return Ok('c'),
            "s" => return Ok('s'),
            "q" => return Ok('q'),
            "a" => return Ok('a'),
            _ => writeln!(output, "I'm sorry, I cannot understand your response.")?,
        }
    }
}

/// Asks until the answer is yes or no, in any case; also the single letters. The end of the input means no.
///
/// # Errors
/// Input or output cannot be used.
pub fn confirm(question: &str, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<bool> {
    loop {
        write!(output, "{question} (Y or N) ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            return Ok(false);
        }
        let answer = line.trim();
        match answer.to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => writeln!(output, "Invalid input: {answer}")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        let chosen = |always, text: &str| {
            let mut output = Vec::new();
            let letter = choose(always, "going", &mut text.as_bytes(), &mut output).unwrap();
            (letter, String::from_utf8(output).unwrap().matches("Enter 'c' to continue, going\n").count())
        };
        assert_eq!(chosen(false, "x\nS\n"), ('s', 2));
        assert_eq!(chosen(false, "a\n"), ('a', 1));
        assert_eq!(chosen(true, ""), ('c', 1));
    }

    #[test]
    fn the_end_of_the_input_quits() {
        assert_eq!(choose(false, "going", &mut io::empty(), &mut io::sink()).unwrap(), 'q');
    }

    #[test]
    fn answers() {
        for (text, expected, asked) in [
            ("y\n", true, 1),
            ("YES\n", true, 1),
            ("N\n", false, 1),
            ("no\n", false, 1),
            ("x\n\ny\n", true, 3),
            ("", false, 1),
        ] {
            let mut output = Vec::new();
            assert_eq!(confirm("Go on ?", &mut text.as_bytes(), &mut output).unwrap(), expected, "{text:?}");
            let output = String::from_utf8(output).unwrap();
            assert_eq!(output.matches("Go on ? (Y or N) ").count(), asked, "{output:?}");
        }
    }
}
