//! The forms of HPE's templates: where ours have a list, theirs have a mapping with repeated keys.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Member, Members, TrafficClass, TrafficClasses, VniAccess, VniList, VniRange};

/// A value that is present, as opposed to a key without one: `members:` with nothing after it looks
/// like a restriction but would not be one.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    match Option::deserialize(deserializer)? {
        None => Err(D::Error::custom("the key has no value: give it one, or leave the key out")),
        some => Ok(some),
    }
}

/// VNIs as a list, or as a mapping: one `vni` for each, or `vni_min` and `vni_max`.
#[derive(Clone, Copy)]
pub(super) struct Vnis {
    pub(super) access: VniAccess,
    /// `true` if it was a mapping.
    pub(super) of_hpe: bool,
}

impl Vnis {
    pub(super) fn list(list: VniList) -> Self {
        Self { access: VniAccess::List(list), of_hpe: false }
    }
}

/// The VNIs as a list: in our form a block has its own key.
impl Serialize for Vnis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.access {
            VniAccess::List(list) => list.serialize(serializer),
            _ => VniList::default().serialize(serializer),
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VniKey {
    Vni,
    VniMin,
    VniMax,
}

impl<'de> Deserialize<'de> for Vnis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Vnis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of VNIs, or a mapping of vni")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vnis, A::Error> {
                VniList::deserialize(SeqAccessDeserializer::new(list)).map(Vnis::list)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vnis, A::Error> {
                let (mut list, mut min, mut max) = (Vec::new(), None, None);
                while let Some(key) = map.next_key()? {
                    let bound = match key {
                        VniKey::Vni => {
                            list.push(map.next_value()?);
                            continue;
                        }
                        VniKey::VniMin => &mut min,
                        VniKey::VniMax => &mut max,
                    };
                    if bound.replace(map.next_value::<u64>()?).is_some() {
                        return Err(A::Error::custom("vni_min and vni_max: expected each once"));
                    }
                }
                let access = match (list.is_empty(), min, max) {
                    (true, Some(min), Some(max)) => {
                        VniAccess::Range(VniRange::from_bounds(min, max).map_err(A::Error::custom)?)
                    }
                    (false, None, None) => {
                        VniAccess::List(VniList::try_from(list).map_err(A::Error::custom)?)
                    }
                    _ => {
                        return Err(A::Error::custom(
                            "expected vni for each VNI, or both vni_min and vni_max",
                        ));
                    }
                };
                Ok(Vnis { access, of_hpe: true })
            }
        }
        deserializer.deserialize_any(Form)
    }
}

/// Traffic classes as a list, or as a mapping with `tc` for each.
#[derive(Serialize)]
pub(super) struct Classes(pub(super) TrafficClasses);

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ClassKey {
    Tc,
}

impl<'de> Deserialize<'de> for Classes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Classes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of traffic classes, or a mapping of tc")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Classes, A::Error> {
                TrafficClasses::deserialize(SeqAccessDeserializer::new(list)).map(Classes)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Classes, A::Error> {
                let mut classes = TrafficClasses::empty();
                while let Some(ClassKey::Tc) = map.next_key()? {
                    classes |= map.next_value::<TrafficClass>()?.into();
                }
                Ok(Classes(classes))
            }
        }
        deserializer.deserialize_any(Form)
    }
}

/// Members, each with type and id, and the traffic classes among them: in HPE's template the key
/// `tcs` is commented out while the classes below it are not.
#[derive(Deserialize)]
#[serde(try_from = "Vec<MemberForm>")]
pub(super) struct MemberList {
    pub(super) members: Members,
    pub(super) classes: Option<TrafficClasses>,
}

impl From<Members> for MemberList {
    fn from(members: Members) -> Self {
        Self { members, classes: None }
    }
}

impl Serialize for MemberList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.members.serialize(serializer)
    }
}

impl TryFrom<Vec<MemberForm>> for MemberList {
    type Error = crate::InvalidValue;

    fn try_from(entries: Vec<MemberForm>) -> Result<Self, crate::InvalidValue> {
        let classes =
            entries.iter().fold(TrafficClasses::empty(), |all, entry| all | entry.classes);
        Ok(Self {
            members: Members::new(entries.into_iter().map(|entry| entry.member))?,
            classes: (!classes.is_empty()).then_some(classes),
        })
    }
}

struct MemberForm {
    member: Member,
    classes: TrafficClasses,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EntryKey {
    Type,
    Id,
    Tc,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Uid,
    Gid,
    #[serde(alias = "net_ns")]
    NetNs,
}

impl<'de> Deserialize<'de> for MemberForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = MemberForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member with type and id")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberForm, A::Error> {
                let (mut kind, mut id) = (None, None);
                let mut classes = TrafficClasses::empty();
                while let Some(key) = map.next_key()? {
                    let again = match key {
                        EntryKey::Type => kind.replace(map.next_value()?).is_some(),
                        EntryKey::Id => id.replace(map.next_value()?).is_some(),
                        EntryKey::Tc => {
                            classes |= map.next_value::<TrafficClass>()?.into();
                            false
                        }
                    };
                    if again {
                        return Err(A::Error::custom("type and id: expected each once"));
                    }
                }
                let id = id.ok_or_else(|| A::Error::missing_field("id"))?;
                let kind = kind.ok_or_else(|| A::Error::missing_field("type"))?;
                Ok(MemberForm {
                    member: match kind {
                        Kind::Uid => Member::Uid(id),
                        Kind::Gid => Member::Gid(id),
                        Kind::NetNs => Member::NetNs(id),
                    },
                    classes,
                })
            }
        }
        deserializer.deserialize_map(Form)
    }
}
