//! The options that every server in `interop/` takes, in the words of its README.

/// What the command line asked for.
pub struct Options {
    pub sound: bool,
    pub transport: Transport,
    pub port: u16,
    pub handle: Handle,
    pub principal: Principal,
}

#[derive(Clone, Copy)]
pub enum Transport {
    Http,
    Stdio,
}

/// Where a minted handle stands in the answer.
#[derive(Clone, Copy)]
pub enum Handle {
    Structured,
    Text,
    Both,
}

/// Over stdio: whether `_meta` names the caller, or every caller is the same.
#[derive(Clone, Copy)]
pub enum Principal {
    Meta,
    None,
}

impl Options {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options =
            Self { sound: true, transport: Transport::Http, port: 0, handle: Handle::Both, principal: Principal::Meta };
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("{name} needs a value"))?;
            match (name.as_str(), value.as_str()) {
                ("--mode", "sound") => options.sound = true,
                ("--mode", "flawed") => options.sound = false,
                ("--transport", "http") => options.transport = Transport::Http,
                ("--transport", "stdio") => options.transport = Transport::Stdio,
                ("--handle", "structured") => options.handle = Handle::Structured,
                ("--handle", "text") => options.handle = Handle::Text,
                ("--handle", "both") => options.handle = Handle::Both,
                ("--principal", "meta") => options.principal = Principal::Meta,
                ("--principal", "none") => options.principal = Principal::None,
                ("--port", port) => options.port = port.parse().map_err(|_| format!("not a port: {port}"))?,
                _ => return Err(format!("unknown option: {name} {value}")),
            }
        }
        Ok(options)
    }
}
