//! The question before existing data is overwritten.

use crate::node::Consent;
use std::io::{self, BufRead, Write};

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
