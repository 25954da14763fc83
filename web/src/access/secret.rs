//! Secrets: made at random, kept as hashes where that will do, and compared without telling how far they match.

use std::hint::black_box;

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A fresh secret: 256 bits as 64 lower-case hexadecimal digits.
pub(crate) fn random() -> String {
    // Three of them hold 366 random bits.
    let mut hash = Sha256::new();
    for _ in 0..3 {
        hash.update(Uuid::new_v4().as_bytes());
    }
    to_hex(&hash.finalize())
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept of a secret that only has to be recognized.
#[derive(Clone, Copy)]
pub(crate) struct Hashed([u8; 32]);

impl Hashed {
    pub(crate) fn of(secret: &[u8]) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// As 64 lower-case hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        to_hex(&self.0)
    }

    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        (digits.len() == 64).then_some(Self(bytes))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

/// Whether two secrets are equal. Takes as long whatever their bytes are; only the length is no secret.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |found, (a, b)| black_box(found | (a ^ b)));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_equal_only_if_every_byte_is() {
        assert!(same(b"secret", b"secret"));
        for other in [&b"secreT"[..], b"Secret", b"secre", b"secret ", b""] {
            assert!(!same(b"secret", other), "{other:?}");
            assert!(!same(other, b"secret"), "{other:?}");
        }
    }

    #[test]
    fn fresh_secrets_have_256_bits_and_differ() {
        let (one, other) = (random(), random());
        assert!(one.len() == 64 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, other);
        assert!(Hashed::of(one.as_bytes()).is(&Hashed::of(one.as_bytes())));
        assert!(!Hashed::of(one.as_bytes()).is(&Hashed::of(other.as_bytes())));
        let hash = Hashed::of(one.as_bytes());
        assert!(Hashed::from_hex(&hash.to_hex()).unwrap().is(&hash));
        for bad in ["", &hash.to_hex()[1..], &(hash.to_hex() + "0"), &"g".repeat(64), &"é".repeat(32)] {
            assert!(Hashed::from_hex(bad).is_none(), "{bad}");
        }
    }
}
