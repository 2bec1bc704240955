//! From what a person types to where the server is.

use handfast_probe::target::Address;
use url::Url;

use crate::output::Failure;

/// Reads TARGET or COMMAND.
pub(crate) fn parse(target: Option<&str>, command: &[String]) -> Result<Address, Failure> {
    match (target, command.split_first()) {
        (Some(_), Some(_)) => Err(Failure("give either a TARGET or a command after `--`, not both".to_owned())),
        (None, None) => Err(Failure("no target: give a URL, or a command after `--`".to_owned())),
        (None, Some((program, arguments))) => {
            Ok(Address::Stdio { program: program.clone(), arguments: arguments.to_vec() })
        }
        (Some(target), None) => of_target(target),
    }
}

fn of_target(target: &str) -> Result<Address, Failure> {
    if let Some(path) = target.strip_prefix("cli://") {
        if !path.starts_with('/') {
            return Err(Failure(format!("`{target}`: cli:// takes an absolute path, as in cli:///usr/bin/server")));
        }
        return Ok(Address::Stdio { program: path.to_owned(), arguments: Vec::new() });
    }
    if !target.contains("://") {
        return Err(Failure(format!(
            "`{target}` is not a URL: write http://{target} or https://{target}, or put a command after `--`"
        )));
    }
    let url =
        Url::parse(target).map_err(|error| Failure(format!("`{}` is not a URL: {error}", without_secrets(target))))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(Failure(format!(
            "`{}`: only http://, https:// and cli:// targets can be tested",
            without_secrets(target)
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure(
            "a URL with a user or password in it: pass credentials with --identity-a or --header".to_owned(),
        ));
    }
    Ok(Address::Http(url))
}

/// A mistyped URL may hold a password; it is not repeated.
fn without_secrets(target: &str) -> String {
    match (target.find("://"), target.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}…{}", &target[..scheme + 3], &target[at..]),
        _ => target.chars().take(200).collect(),
    }
}
