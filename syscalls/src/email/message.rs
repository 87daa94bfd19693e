//! A message of RFC 5322: built by one library, read back by another.

use mail_builder::{MessageBuilder, headers::address::Address as Mailbox, headers::date::Date};
use mailparse::{MailAddr, MailHeaderMap, ParsedMail, addrparse_header, parse_mail};

use super::address::Address;

/// The intended message.
pub(super) struct Meant<'a> {
    pub(super) to: &'a [Address],
    pub(super) cc: &'a [Address],
    pub(super) bcc: &'a [Address],
    pub(super) subject: &'a str,
    /// Lines end with a line feed.
    pub(super) body: &'a str,
    /// Without the angle brackets.
    pub(super) id: &'a str,
    /// Seconds since 1970.
    pub(super) unix_s: i64,
}

impl Meant<'_> {
    /// The message's bytes, if another library reads in them what is meant, and nothing else.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let list = |list: &[Address]| {
            let all =
                list.iter().map(|one| Mailbox::new_address(None::<&str>, one.as_str().to_owned()));
            Mailbox::new_list(all.collect())
        };
        let mut message = MessageBuilder::new()
            .message_id(self.id)
            .date(Date::new(self.unix_s))
            .to(list(self.to))
            .subject(self.subject)
            .text_body(self.body);
        if !self.cc.is_empty() {
            message = message.cc(list(self.cc));
        }
        if !self.bcc.is_empty() {
            message = message.bcc(list(self.bcc));
        }
        let bytes = message.write_to_vec().ok()?;
        self.is_read_in(&bytes).then_some(bytes)
    }

    fn is_read_in(&self, bytes: &[u8]) -> bool {
        // No bare line feed or carriage return, and no zero byte: programs differ about them.
        let text = String::from_utf8_lossy(bytes);
        if text.replace("\r\n", "").contains(['\r', '\n', '\0']) {
            return false;
        }
        let Ok(read) = parse_mail(bytes) else { return false };
        let mut expected = vec![
            "content-transfer-encoding",
            "content-type",
            "date",
            "message-id",
            "mime-version",
            "subject",
            "to",
        ];
        expected.extend((!self.cc.is_empty()).then_some("cc"));
        expected.extend((!self.bcc.is_empty()).then_some("bcc"));
        expected.sort_unstable();
        let mut found: Vec<String> =
            read.headers.iter().map(|header| header.get_key().to_ascii_lowercase()).collect();
        found.sort_unstable();
        found == expected
            && read.subparts.is_empty()
            && read.ctype.mimetype == "text/plain"
            && is(&read, "To", self.to)
            && is(&read, "Cc", self.cc)
            && is(&read, "Bcc", self.bcc)
            && read.headers.get_first_value("Subject").as_deref() == Some(self.subject)
            && read.headers.get_first_value("Message-ID") == Some(format!("<{}>", self.id))
            && read.get_body().is_ok_and(|body| body.replace("\r\n", "\n") == self.body)
    }
}

/// True if a header names exactly these addresses, in this order.
fn is(read: &ParsedMail<'_>, header: &str, meant: &[Address]) -> bool {
    let Some(header) = read.headers.get_first_header(header) else { return meant.is_empty() };
    let Ok(found) = addrparse_header(header) else { return false };
    found.len() == meant.len()
        && found.iter().zip(meant).all(|(found, meant)| match found {
            MailAddr::Single(one) => one.display_name.is_none() && one.addr == meant.as_str(),
            MailAddr::Group(_) => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reader finds everything that the builder would let through.
    #[test]
    fn a_message_that_reads_otherwise_is_not_meant() {
        let to = [Address::parse("ann@example.com").unwrap()];
        let meant = Meant {
            to: &to,
            cc: &[],
            bcc: &[],
            subject: "hello",
            body: "text\n",
            id: "1@x.invalid",
            unix_s: 0,
        };
        let bytes = meant.to_bytes().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(meant.is_read_in(text.as_bytes()));
        for (from, to) in [
            ("Subject: hello", "Subject: hello\r\nBcc: eve@evil.test"),
            ("Subject: hello", "Subject: hello\nX: y"),
            ("Subject: hello", "Subject: hello\r\nX-Other: y"),
            ("Subject: hello", "Subject: other"),
            ("ann@example.com", "ann@example.com>, <eve@evil.test"),
            ("<ann@example.com>", "Ann <ann@example.com>"),
            ("<ann@example.com>", "g: <ann@example.com>;"),
            ("text/plain", "text/html"),
            ("text\r\n", "text\r\nmore\r\n"),
            ("text\r\n", "other\r\n"),
            ("1@x.invalid", "2@x.invalid"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            assert!(!meant.is_read_in(changed.as_bytes()), "{to}");
        }
        let subject = "hello\r\nBcc: eve@evil.test";
        assert_eq!(Meant { subject, ..meant }.to_bytes(), None);
    }
}
