//! An X.509 certificate (RFC 5280), as far as a signer has to know its own: whose it is, how long it is valid, and
//! whether validators accept it (C2PA specification, 14.5.1). Trust in its issuer is not judged here.

use kinora_contract::UnixMs;
use kinora_contract::parse_iso_day;

use crate::der::{
    BIT_STRING, BOOLEAN, Elements, GENERALIZED_TIME, OCTET_STRING, OID, SEQUENCE, UTC_TIME,
};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const AUTHORITY_KEY: &[u8] = &[0x55, 0x1d, 0x23];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const ANY_USE: &[u8] = &[0x55, 0x1d, 0x25, 0x00];
/// Uses that validators accept by default: e-mail, documents, C2PA, and Microsoft's C2PA.
const USES: [&[u8]; 4] = [
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x04],
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x24],
    &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xe8, 0x5e, 0x02, 0x01],
    &[
        0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x4c, 0x3b, 0x01, 0x09,
    ],
];

const DIGITAL_SIGNATURE: u8 = 0x80;
const CERTIFICATE_SIGNING: u8 = 0x04;

/// The relevant parts of a certificate.
#[derive(Debug)]
pub(crate) struct Certificate<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    pub(crate) not_before_ms: UnixMs,
    pub(crate) not_after_ms: UnixMs,
    /// The object identifiers of its key's kind and, for EC, curve.
    pub(crate) algorithm: &'a [u8],
    pub(crate) curve: Option<&'a [u8]>,
    /// The public key, in the form of its kind.
    pub(crate) public_key: &'a [u8],
    is_authority: bool,
    key_usage: Option<u8>,
    uses: Vec<&'a [u8]>,
    names_authority_key: bool,
}

impl<'a> Certificate<'a> {
    /// Reads DER. `None` for what is no certificate of version 3.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut certificate = Elements::of(Elements::of(der).optional(SEQUENCE)?);
        let mut fields = Elements::of(certificate.optional(SEQUENCE)?);
        let version = fields.optional(0xa0)?;
        if version != [0x02, 0x01, 0x02] {
            return None;
        }
        let [_serial, _signature] = [fields.next()?, fields.next()?];
        let issuer = fields.optional(SEQUENCE)?;
        let mut validity = Elements::of(fields.optional(SEQUENCE)?);
        let subject = fields.optional(SEQUENCE)?;
        let mut key = Elements::of(fields.optional(SEQUENCE)?);
        let mut kind = Elements::of(key.optional(SEQUENCE)?);
        let mut read = Self {
            issuer,
            subject,
            not_before_ms: time(&mut validity)?,
            not_after_ms: time(&mut validity)?,
            algorithm: kind.optional(OID)?,
            curve: kind.optional(OID),
            public_key: bits(key.optional(BIT_STRING)?)?,
            is_authority: false,
            key_usage: None,
            uses: Vec::new(),
            names_authority_key: false,
        };
        let extensions = fields.find(|field| field.tag == 0xa3)?.body;
        for extension in Elements::of(Elements::of(extensions).optional(SEQUENCE)?) {
            read.take(Elements::of(extension.body))?;
        }
        Some(read)
    }

    fn take(&mut self, mut extension: Elements<'a>) -> Option<()> {
        let name = extension.optional(OID)?;
        // Whether it is critical.
        let _ = extension.optional(BOOLEAN);
        let mut value = Elements::of(extension.optional(OCTET_STRING)?);
        match name {
            KEY_USAGE => {
                self.key_usage = bits(value.optional(BIT_STRING)?)?.first().copied();
            }
            BASIC_CONSTRAINTS => {
                let mut constraints = Elements::of(value.optional(SEQUENCE)?);
                self.is_authority = constraints.optional(BOOLEAN) == Some(&[0xff]);
            }
            EXTENDED_KEY_USAGE => {
                let uses = Elements::of(value.optional(SEQUENCE)?);
                self.uses = uses.map(|one| one.body).collect();
            }
            AUTHORITY_KEY => self.names_authority_key = true,
            _ => {}
        }
        Some(())
    }

    /// The common name of its subject, if it has one.
    pub(crate) fn name(&self) -> Option<String> {
        let names = Elements::of(self.subject).flat_map(|set| Elements::of(set.body));
        let mut texts = names.filter_map(|name| {
            let mut name = Elements::of(name.body);
            let is_common = name.optional(OID)? == COMMON_NAME;
            let text = name.next()?.body;
            is_common.then(|| String::from_utf8_lossy(text).into_owned())
        });
        texts.next()
    }

    pub(crate) fn is_issued_by(&self, other: &Certificate<'_>) -> bool {
        self.issuer == other.subject
    }

    pub(crate) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Why validators would refuse it as a signer's.
    pub(crate) fn objection(&self) -> Option<&'static str> {
        let usage = self.key_usage.unwrap_or_default();
        if self.is_authority || usage & CERTIFICATE_SIGNING != 0 {
            Some("it is a certificate authority's")
        } else if self.is_self_issued() {
            Some("it is self-signed")
        } else if usage & DIGITAL_SIGNATURE == 0 {
            Some("its key usage lacks digitalSignature")
        } else if self.uses.contains(&ANY_USE) || !self.uses.iter().any(|one| USES.contains(one)) {
            Some(
                "its extended key usage must name C2PA signing (1.3.6.1.4.1.62558.2.1), documentSigning or \
                 emailProtection",
            )
        } else if !self.names_authority_key {
            Some("it lacks the authority key identifier")
        } else {
            None
        }
    }
}

/// The content of a string of whole bytes.
fn bits(body: &[u8]) -> Option<&[u8]> {
    let (unused, content) = body.split_first()?;
    (*unused < 8).then_some(content)
}

/// The next element as a time (RFC 5280, 4.1.2.5), in milliseconds since 1970; 0 for an earlier one.
fn time(fields: &mut Elements<'_>) -> Option<UnixMs> {
    let field = fields.next()?;
    let text = std::str::from_utf8(field.body).ok()?.strip_suffix('Z')?;
    let (year, rest) = match field.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: u64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let two = |at: usize| rest[at..at + 2].parse::<u64>().ok();
    let (month, day) = (&rest[..2], &rest[2..4]);
    if year < 1970 {
        return Some(0);
    }
    let days = parse_iso_day(&format!("{year}-{month}-{day}"))?;
    let seconds = two(4)? * 3600 + two(6)? * 60 + two(8)?;
    Some(days * DAY_MS + seconds * 1000)
}

#[cfg(test)]
mod tests {
    use kinora_contract::iso_date;

    use super::*;
    use crate::der::element;

    #[test]
    fn both_forms_of_a_time_are_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "261122034501Z", Some("2026-11-22T03:45:01Z")),
            (UTC_TIME, "491231235959Z", Some("2049-12-31T23:59:59Z")),
            (UTC_TIME, "500101000000Z", Some("1970-01-01T00:00:00Z")),
            (
                GENERALIZED_TIME,
                "20500101000000Z",
                Some("2050-01-01T00:00:00Z"),
            ),
            (
                GENERALIZED_TIME,
                "99991231235959Z",
                Some("9999-12-31T23:59:59Z"),
            ),
            (UTC_TIME, "261322034501Z", None),
            (UTC_TIME, "2611220345Z", None),
            (UTC_TIME, "26112203450é", None),
            (OID, "261122034501Z", None),
        ] {
            let field = element(tag, text.as_bytes());
            let read = time(&mut Elements::of(&field)).map(iso_date);
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
