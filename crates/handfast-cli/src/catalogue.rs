//! `handfast checks`.

use std::{fmt::Write, process::ExitCode};

use handfast_probe::{checks, cvss};

use crate::{
    output::{self, Failure},
    settings,
};

/// Arguments of `handfast checks`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The check to explain; all of them are listed without one
    id: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    match &args.id {
        None => {
            for check in checks::all() {
                let severity = format!("{:?}", check.severity).to_lowercase();
                let _ = writeln!(text, "{:<26} {severity:<8} {:<9} {}", check.id, check.level.word(), check.claim);
            }
        }
        Some(id) => {
            for check in settings::chosen(std::slice::from_ref(id))? {
                let cwe: Vec<String> = check.cwe.iter().map(|number| format!("CWE-{number}")).collect();
                let severity = format!("{:?}", check.severity).to_lowercase();
                let _ = writeln!(text, "{}: {}\n", check.id, check.title);
                let _ = writeln!(text, "{severity}, {}, {}", check.level.word(), cwe.join(", "));
                if let Some(scored) = cvss::of(check.cvss, check.severity) {
                    let _ = writeln!(text, "CVSS {:.1} ({})", scored.score, scored.vector);
                }
                for entry in check.owasp {
                    let _ = writeln!(text, "OWASP {} {}", entry.id, entry.title);
                }
                let _ = writeln!(text, "\"{}\"\n{}\n\n{}", check.spec, check.spec_url, check.help.trim_end());
            }
        }
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
