//! Studio, the web page of the service: static ES modules and styles in the binary, each also compressed.
//! The page loads them from a folder whose name is a hash over all of them. This crate knows no HTTP library;
//! `kinora-api` serves what it finds here.

#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page's Content-Security-Policy. Scripts and styles come from the binary alone, and scripts reach only this
/// service. Pictures, films and sounds may come from anywhere: the page shows references at the addresses that its
/// user types, and result addresses may lead to the result store's own host.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' http: https: blob:; media-src 'self' http: https: blob:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    name: &'static str,
    /// Its bytes.
    pub plain: &'static [u8],
    /// The same bytes, compressed by gzip.
    pub packed: &'static [u8],
}

impl File {
    /// The media type, for `Content-Type`.
    pub fn media_type(&self) -> &'static str {
        match self.name.rsplit_once('.') {
            Some((_, "html")) => "text/html; charset=utf-8",
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            Some((_, "svg")) => "image/svg+xml",
            _ => "application/octet-stream",
        }
    }
}

/// The page itself. Its bytes change whenever a file does: [`version`] is its entity tag.
pub const fn page() -> File {
    PAGE
}

/// A hash over all files, in 16 hexadecimal digits.
pub const fn version() -> &'static str {
    VERSION
}

/// The file that the page loads from `studio/{path}`; `path` begins with the [`version`].
pub fn find(path: &str) -> Option<File> {
    let (version, name) = path.split_once('/')?;
    let found = FILES.iter().find(|file| file.name == name);
    found.filter(|_| version == VERSION).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound on a first visit: about a second at 1.2 Mbit/s.
    const PACKED_BYTES_MAX: usize = 150_000;

    #[test]
    fn the_page_names_every_script_and_style_in_the_folder_of_this_version() {
        let page = std::str::from_utf8(page().plain).unwrap();
        for file in FILES {
            let path = format!("{VERSION}/{}", file.name);
            assert_eq!(find(&path), Some(*file));
            assert!(page.contains(&format!("\"studio/{path}\"")), "{path}");
        }
        assert!(!page.contains("{{") && !page.contains("<!--"), "{page}");
    }

    #[test]
    fn only_this_version_is_found() {
        for path in ["", "app.js", "0000000000000000/app.js", "../app.js"] {
            assert_eq!(find(path), None, "{path}");
        }
        assert_eq!(find(&format!("{VERSION}/")), None);
        assert_eq!(find(&format!("{VERSION}/index.html")), None);
    }

    #[test]
    fn a_first_visit_loads_less_than_150_kb() {
        let files = FILES.iter().chain([&PAGE]);
        let packed: usize = files.map(|file| file.packed.len()).sum();
        assert!(packed < PACKED_BYTES_MAX, "{packed} bytes");
    }

    #[test]
    fn every_file_has_a_media_type_that_browsers_take() {
        for file in FILES.iter().chain([&PAGE]) {
            assert_ne!(
                file.media_type(),
                "application/octet-stream",
                "{}",
                file.name
            );
        }
    }

    /// The declarations of a style sheet: property and value.
    fn declarations(css: &str) -> Vec<(String, String)> {
        let without_comments: String = css
            .split("/*")
            .enumerate()
            .map(|(number, part)| match number {
                0 => part,
                _ => part.split_once("*/").unwrap().1,
            })
            .collect();
        let parts = without_comments.split(['{', '}', ';']);
        let pairs = parts.filter_map(|part| part.trim().split_once(": "));
        pairs
            .map(|(property, value)| (property.to_owned(), value.to_owned()))
            .collect()
    }

    /// Whether a value has a length of its own, such as `12px` or `1.5rem`.
    fn has_length(value: &str) -> bool {
        let units = ["px", "em", "rem", "vh", "vw", "dvh", "ch", "pt"];
        let words = value.split(|letter: char| !letter.is_alphanumeric() && letter != '.');
        words.into_iter().any(|word| {
            let unit =
                word.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            unit.len() < word.len() && units.contains(&unit)
        })
    }

    fn is_distance_or_corner(property: &str) -> bool {
        let stems = [
            "padding",
            "margin",
            "inset",
            "scroll-margin",
            "scroll-padding",
        ];
        stems.iter().any(|stem| property.starts_with(stem))
            || property.ends_with("gap")
            || property.ends_with("radius")
            || ["top", "right", "bottom", "left"].contains(&property)
    }

    fn has_colour(value: &str) -> bool {
        let functions = ["rgb(", "rgba(", "hsl(", "oklch(", "light-dark("];
        let is_hex = |word: &str| word.starts_with('#');
        functions.iter().any(|one| value.contains(one)) || value.split([' ', ',', '(']).any(is_hex)
    }

    #[test]
    fn distances_corners_and_colours_are_tokens() {
        let mut wrong = Vec::new();
        let mut seen = 0;
        let styles = FILES.iter().filter(|file| file.name.ends_with(".css"));
        for file in styles.filter(|file| file.name != "style/tokens.css") {
            for (property, value) in declarations(std::str::from_utf8(file.plain).unwrap()) {
                let is_place = is_distance_or_corner(&property);
                seen += usize::from(is_place);
                if is_place && has_length(&value) || has_colour(&value) {
                    wrong.push(format!("{}: {property}: {value}", file.name));
                }
            }
        }
        assert!(seen > 100, "only {seen} declarations were read");
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }

    #[test]
    fn only_lengths_of_their_own_are_refused() {
        let css = "a { padding: 3px 0; /* b: 4px; */ top: calc(100% - 1.5rem) }\n@media (x) { b { gap: var(--space-2) } }";
        let found = declarations(css);
        let properties: Vec<&str> = found
            .iter()
            .map(|(property, _)| property.as_str())
            .collect();
        assert_eq!(properties, ["padding", "top", "gap"]);
        let own: Vec<bool> = found.iter().map(|(_, value)| has_length(value)).collect();
        assert_eq!(own, [true, true, false]);
        assert!(!has_length("50% 0 auto var(--space-3)"));
        assert!(
            has_colour("1px solid #fff") && has_colour("rgb(0 0 0)") && !has_colour("var(--line)")
        );
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for file in FILES.iter().chain([&PAGE]) {
            let text = std::str::from_utf8(file.plain).unwrap();
            for line in text.lines().filter(|line| line.contains("://")) {
                let harmless = ["http://www.w3.org/", "\"https://", "`https://"];
                assert!(
                    harmless.iter().any(|one| line.contains(one)),
                    "{}: {line}",
                    file.name
                );
            }
        }
    }
}
