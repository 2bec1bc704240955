//! Text that somebody else wrote, shown to a person.

/// Whether a character only shows itself: it moves no cursor, rings no bell and turns no text around.
pub fn is_printable(c: char) -> bool {
    let turns_text =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !c.is_control() && !turns_text
}
