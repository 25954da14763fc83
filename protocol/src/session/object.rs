//! Types that are read from a JSON object and from nothing else; what serde derives takes an array for a struct, too.

/// Makes the functions that `#[serde(remote = "Self")]` derives for a type its `Serialize` and `Deserialize`, the latter
/// for objects only.
macro_rules! only_objects {
    ($($object:ident),+) => {$(
        impl serde::Serialize for $object {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The derived function, which goes before the trait's.
                $object::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $object {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $object;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object: ", stringify!($object)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$object, A::Error> {
                        $object::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    }
                }

                deserializer.deserialize_map(Object)
            }
        }
    )+};
}

pub(super) use only_objects;
