//! The output of a command, within bounds of time and size.

use std::{process::Stdio, time::Duration};

use secrecy::SecretString;
use tokio::{io::AsyncReadExt, process::Command};

use super::{CredentialError, LONGEST};

/// The first and only line that a program prints.
pub(super) async fn output_of(program: &str, arguments: &[String]) -> Result<SecretString, CredentialError> {
    // Arguments may be secret, and so may be what the program says.
    let fail = |reason: String| CredentialError::Command { program: program.to_owned(), reason };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| fail(format!("cannot be run: {error}")))?;
    let Some(output) = child.stdout.take() else { return Err(fail("has no output".to_owned())) };
    let running = async {
        let mut bytes = Vec::new();
        let bound = u64::try_from(LONGEST).unwrap_or(u64::MAX) + 2;
        let read = output.take(bound).read_to_end(&mut bytes).await;
        read.map_err(|error| fail(format!("could not be read: {error}")))?;
        let status = child.wait().await.map_err(|error| fail(format!("did not end: {error}")))?;
        Ok((bytes, status))
    };
    let patience = tokio::time::timeout(PATIENCE, running).await;
    let (bytes, status) = patience.map_err(|_| fail(format!("did not end within {} s", PATIENCE.as_secs())))??;
    if !status.success() {
        return Err(fail(format!("ended with {status}")));
    }
    let text = String::from_utf8(bytes).map_err(|_| CredentialError::Unusable)?;
    Ok(SecretString::from(text.trim_end_matches(['\n', '\r']).to_owned()))
}

const PATIENCE: Duration = Duration::from_secs(30);
