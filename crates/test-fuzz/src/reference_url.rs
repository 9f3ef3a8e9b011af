//! A reference URL: whatever passes is http or https, with a host and without user information.

use kinora_contract::reference_url;

pub(crate) fn check(text: &str) {
    if reference_url::check(text, "first_frame").is_err() {
        return;
    }
    let lower = text.to_ascii_lowercase();
    assert!(
        lower.starts_with("http:") || lower.starts_with("https:"),
        "{text:?}"
    );
    assert!(
        !text.contains(char::is_whitespace) && !text.contains(char::is_control),
        "{text:?}"
    );
    // As browsers read it: any number of slashes of either kind begins the authority.
    let (_, rest) = text.split_once(':').unwrap_or_default();
    let authority = rest.trim_start_matches(['/', '\\']);
    let authority = authority
        .split(['/', '?', '#', '\\'])
        .next()
        .unwrap_or_default();
    assert!(!authority.contains('@'), "{text:?}");
}
