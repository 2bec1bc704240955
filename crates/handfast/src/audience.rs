//! When two audiences are the same server: the exact URI, but for what RFC 3986 (section 6.2.2 and 6.2.3) says makes no
//! difference in every URI: the case of scheme and host, the default port, an empty path. No prefix, no suffix, no slash
//! more or less.

/// Whether an audience of a token names this server.
pub(crate) fn same(ours: &str, claimed: &str) -> bool {
    match (canonical(ours), canonical(claimed)) {
        (Some(ours), Some(claimed)) => ours == claimed,
        // A name that is no URI is that name.
        _ => ours == claimed,
    }
}

/// Whether this is the URI of a server.
#[cfg(feature = "tokens")]
pub(crate) fn is_uri(text: &str) -> bool {
    canonical(text).is_some()
}

/// The one spelling of an `http` or `https` URI; `None` where it is none, or has what a resource indicator may not have
/// (RFC 8707, section 2: no fragment) or should not (a user).
fn canonical(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let default = match scheme.as_str() {
        "https" => "443",
        "http" => "80",
        _ => return None,
    };
    let graphic = rest.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#' && byte != b'\\');
    if !graphic {
        return None;
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        // The colons of an IPv6 address stand within its brackets.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let digits = port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.is_empty() || host.contains('@') || !digits || (host.contains(':') && !bracketed) {
        return None;
    }
    let port = port.filter(|port| !port.is_empty() && *port != default);
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let slash = if path.starts_with('/') { "" } else { "/" };
    Some(format!("{scheme}://{}{port}{slash}{path}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "https://mcp.example.com/mcp";

    #[test]
    fn what_every_uri_may_be_written_like() {
        for claimed in
            [OURS, "HTTPS://mcp.example.com/mcp", "https://MCP.Example.COM/mcp", "https://mcp.example.com:443/mcp"]
        {
            assert!(same(OURS, claimed), "{claimed}");
        }
        for (ours, claimed) in [
            ("https://mcp.example.com", "https://mcp.example.com/"),
            ("https://mcp.example.com", "https://mcp.example.com:/"),
            ("http://[::1]/mcp", "http://[::1]:80/mcp"),
            ("http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp"),
            ("https://h?a", "https://h/?a"),
            ("api://default", "api://default"),
            ("our-server", "our-server"),
        ] {
            assert!(same(ours, claimed) && same(claimed, ours), "{ours} {claimed}");
        }
    }

    #[test]
    fn nearly_is_another_server() {
        for claimed in [
            "https://mcp.example.com/mcp2",
            "https://mcp.example.com/mc",
            "https://mcp.example.com/mcp/",
            "https://mcp.example.com/mcp/tools",
            "https://mcp.example.com/MCP",
            "https://mcp.example.com/",
            "https://mcp.example.com",
            "https://mcp.example.com/mcp?",
            "https://mcp.example.com/mcp#",
            "https://mcp.example.com/x/../mcp",
            "https://mcp.example.com/%6dcp",
            "https://mcp.example.com//mcp",
            "https://mcp.example.com./mcp",
            "https://mcp.example.com:8443/mcp",
            "https://mcp.example.com:0443/mcp",
            "https://mcp.example.com:443:443/mcp",
            "https://mcp.example.com:443:/mcp",
            "https://mcp.example.com.evil.example/mcp",
            "https://evil.example/mcp",
            "https://mcp.example.com@evil.example/mcp",
            "https://user@mcp.example.com/mcp",
            "https://mcp.example.com\\@evil.example/mcp",
            "https:///mcp",
            "http://mcp.example.com/mcp",
            "http://mcp.example.com:443/mcp",
            "//mcp.example.com/mcp",
            "mcp.example.com/mcp",
            " https://mcp.example.com/mcp",
            "https://mcp.example.com/mcp ",
            "https://mcp.example.com/mcp\n",
            "",
        ] {
            assert!(!same(OURS, claimed) && !same(claimed, OURS), "{claimed:?}");
        }
    }
}
