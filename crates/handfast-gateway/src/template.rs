//! The template of a URI (RFC 6570), as far as it says where in a URI a handle stands.

use std::ops::Range;

use regex::Regex;

/// A template, of which one variable is a handle.
#[derive(Debug)]
pub(crate) struct Template(Regex);

impl Template {
    /// Reads a template.
    pub(crate) fn new(text: &str, variable: &str) -> Result<Self, String> {
        let (mut pattern, mut rest, mut found) = (String::from("^"), text, false);
        while let Some((before, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}').ok_or_else(|| format!("`{text}` has a `{{` without a `}}`"))?;
            pattern.push_str(&regex::escape(before));
            let names: Vec<&str> = inside.trim_start_matches(|c| "+#./;?&".contains(c)).split(',').collect();
            let is_it = names.iter().any(|name| name.trim_end_matches('*') == variable) && !found;
            found |= is_it;
            // Whatever a variable is expanded to, it has something, and what stands after it comes after it.
            pattern.push_str(match (is_it, inside.chars().next()) {
                (true, Some('?' | '&')) => r"[?&][^=]+=(?<it>[^&#]+)",
                (true, Some('+' | '#')) => "(?<it>.+)",
                (true, _) => "(?<it>[^/?#]+)",
                (false, _) => ".*",
            });
            rest = after;
        }
        pattern.push_str(&regex::escape(rest));
        pattern.push('$');
        if !found {
            return Err(format!("`{text}` has no variable `{variable}`"));
        }
        Regex::new(&pattern).map(Self).map_err(|error| error.to_string().replace('\n', " "))
    }

    /// Where the handle stands in a URI that this template could have made.
    pub(crate) fn variable_in(&self, uri: &str) -> Option<Range<usize>> {
        self.0.captures(uri)?.name("it").map(|place| place.range())
    }
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn a_handle_is_found_in_a_uri_that_the_template_made() {
        for (template, uri, handle) in [
            ("basket://{basket_id}", "basket://b-1", Some("b-1")),
            ("basket://{basket_id}/items{?page}", "basket://b-1/items?page=2", Some("b-1")),
            ("basket://{shop}/{basket_id}", "basket://s/b-1", Some("b-1")),
            ("file:///{+basket_id}", "file:///a/b/c", Some("a/b/c")),
            ("basket://list{?basket_id}", "basket://list?basket_id=b-1", Some("b-1")),
            ("basket://{basket_id}", "basket://", None),
            ("basket://{basket_id}", "basket://b-1/items", None),
            ("basket://{basket_id}/items", "basket://b-1/other", None),
            ("a.b://{basket_id}", "axb://b-1", None),
        ] {
            let read = Template::new(template, "basket_id").expect("a template");
            assert_eq!(read.variable_in(uri).map(|place| &uri[place]), handle, "{template} {uri}");
        }
        assert!(Template::new("basket://{other}", "basket_id").is_err());
        assert!(Template::new("basket://{basket_id", "basket_id").is_err());
    }
}
