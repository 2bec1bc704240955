//! The options of the servers that speak HTTP only, in the words of `interop/README.md`. Flawed is the default there: it
//! is what the SDK leaves an author with.

/// Whether it is sound, and the port; 0 is a free one.
pub fn parse(mut words: impl Iterator<Item = String>) -> Result<(bool, u16), String> {
    let (mut sound, mut port) = (false, 0);
    while let Some(name) = words.next() {
        let value = words.next().ok_or(format!("{name} needs a value"))?;
        match (name.as_str(), value.as_str()) {
            ("--mode", "sound") => sound = true,
            ("--mode", "flawed") => sound = false,
            ("--transport", "http") => {}
            ("--port", value) => port = value.parse().map_err(|_| format!("not a port: {value}"))?,
            _ => return Err(format!("unknown option: {name} {value}")),
        }
    }
    Ok((sound, port))
}
