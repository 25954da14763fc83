//! Encoding and decoding undo each other, and nothing else decodes.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn an_entry_comes_back_from_its_bytes(entry in any_entry()) {
        let mut out = Encoder::new();
        entry.encode(&mut out);
        let mut input = Decoder::new("entry", out.as_slice());
        prop_assert_eq!(Entry::decode(&mut input), Ok(entry));
        prop_assert!(input.is_empty());
    }
}
