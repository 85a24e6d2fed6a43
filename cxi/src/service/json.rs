//! Services in JSON and YAML, in the form of HPE's service templates.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::forms::{Classes, MemberList, Vnis, present};
use super::settings::with_settings;
use super::table::Settings;
use super::{Contradiction, InvalidSpec, Restriction, Service, ServiceSpec};
use crate::{
    Limit, Limits, LnisPerRgid, Members, Resource, ServiceId, TrafficClasses, VniAccess, VniList,
    VniRange,
};

/// A switch, as `true` or `1`.
#[derive(Clone, Copy, Serialize)]
struct Switch(bool);

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Switch;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("true, false, 1 or 0")
            }

            fn visit_bool<E>(self, on: bool) -> Result<Switch, E> {
                Ok(Switch(on))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Switch, E> {
                match number {
                    0 | 1 => Ok(Switch(number == 1)),
                    other => Err(E::invalid_value(serde::de::Unexpected::Unsigned(other), &self)),
                }
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Switch, E> {
                let unexpected = serde::de::Unexpected::Signed(number);
                match u64::try_from(number) {
                    Ok(number) => self.visit_u64(number),
                    Err(_) => Err(E::invalid_value(unexpected, &self)),
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Limits as a list of entries with names.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedLimit {
    name: Resource,
    max: u16,
    #[serde(default)]
    res: u16,
}

#[derive(Serialize, Deserialize)]
#[serde(into = "Vec<NamedLimit>", try_from = "Vec<NamedLimit>")]
#[derive(Clone, Copy)]
struct LimitList(Limits);

impl TryFrom<Vec<NamedLimit>> for LimitList {
    type Error = String;

    fn try_from(entries: Vec<NamedLimit>) -> Result<Self, String> {
        let mut limits = Limits::default();
        let mut named = crate::ResourceMap::<bool>::default();
        for NamedLimit { name, max, res } in entries {
            if std::mem::replace(&mut named[name], true) {
                return Err(format!("{name} are limited twice: name each resource once"));
            }
            limits[name] = Limit::new(res, max).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(Self(limits))
    }
}

impl From<LimitList> for Vec<NamedLimit> {
    fn from(limits: LimitList) -> Self {
        let named = |(name, limit): (Resource, &Limit)| NamedLimit {
            name,
            max: limit.max(),
            res: limit.reserved(),
        };
        limits.0.iter().map(named).collect()
    }
}

/// A setting's value in a template.
trait Keyed: Sized {
    type Form;

    /// Its form, unless it is the default.
    fn form(self) -> Option<Self::Form>;
    fn of(form: Option<Self::Form>) -> Self;
}

impl Keyed for bool {
    type Form = Switch;

    fn form(self) -> Option<Switch> {
        self.then_some(Switch(true))
    }

    fn of(form: Option<Switch>) -> Self {
        form.is_some_and(|Switch(on)| on)
    }
}

impl Keyed for u8 {
    type Form = u8;

    fn form(self) -> Option<u8> {
        (self != 0).then_some(self)
    }

    fn of(form: Option<u8>) -> Self {
        form.unwrap_or_default()
    }
}

impl Keyed for Option<LnisPerRgid> {
    type Form = LnisPerRgid;

    fn form(self) -> Self {
        self
    }

    fn of(form: Self) -> Self {
        form
    }
}

macro_rules! template {
    ($( $(#[$doc:meta])* $name:ident: $given:ty as $kept:ty { key $key:literal, $($rest:tt)* } )*) => {
        /// The form of a [`ServiceSpec`].
        #[derive(Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct Template {
            #[serde(skip_serializing_if = "Option::is_none")]
            restricted_members: Option<Switch>,
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
            members: Option<MemberList>,
            #[serde(skip_serializing_if = "Option::is_none")]
            restricted_vnis: Option<Switch>,
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
            vnis: Option<Vnis>,
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
            vni_range: Option<VniRange>,
            #[serde(skip_serializing_if = "Option::is_none")]
            restricted_tcs: Option<Switch>,
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
            tcs: Option<Classes>,
            #[serde(skip_serializing_if = "Option::is_none")]
            resource_limits: Option<Switch>,
            #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
            limits: Option<LimitList>,
            #[serde(skip_serializing_if = "Option::is_none")]
            enable: Option<Switch>,
            $(
                #[serde(rename = $key, skip_serializing_if = "Option::is_none")]
                $name: Option<<$kept as Keyed>::Form>,
            )*
        }

        impl Template {
            fn settings(&self) -> Settings {
                Settings { $( $name: Keyed::of(self.$name), )* }
            }

            fn with_settings(mut self, settings: Settings) -> Self {
                $( self.$name = settings.$name.form(); )*
                self
            }
        }
    };
}

with_settings!(template);

impl Template {
    /// Combines a switch with the list it applies to. HPE's tool ignores a list that is switched
    /// off, and so does a template in its form; in our form that is a contradiction.
    fn switched<T>(
        &self,
        switch: Option<Switch>,
        value: Option<T>,
        restriction: Restriction,
    ) -> Result<Option<T>, InvalidSpec> {
        match (switch, &value) {
            (Some(Switch(false)), Some(_)) if self.is_of_hpe() => Ok(None),
            (Some(Switch(false)), Some(_)) => {
                Err(Contradiction::ListSwitchedOff(restriction).into())
            }
            (Some(Switch(true)), None) => Err(Contradiction::NoList(restriction).into()),
            _ => Ok(value),
        }
    }

    fn is_of_hpe(&self) -> bool {
        self.vnis.is_some_and(|vnis| vnis.of_hpe)
    }
}

impl TryFrom<Template> for ServiceSpec {
    type Error = InvalidSpec;

    fn try_from(mut template: Template) -> Result<Self, InvalidSpec> {
        let mut builder = Self::builder();
        let among_members = template.members.as_ref().and_then(|list| list.classes);
        let members = template.members.take().map(|list| list.members);
        if let Some(members) =
            template.switched(template.restricted_members, members, Restriction::Members)?
        {
            builder = builder.members(members.iter());
        }
        let access = template.vnis.map(|vnis| vnis.access);
        let range = access.filter(|access| matches!(access, VniAccess::Range(_)));
        if let Some(access) = range.or(template.switched(
            template.restricted_vnis,
            access.filter(|_| range.is_none()),
            Restriction::Vnis,
        )?) {
            builder = builder.vni_access(access);
        }
        if let Some(range) = template.vni_range {
            builder = builder.vni_range(range);
        } else if template.vnis.is_none() && template.restricted_vnis.is_some() {
            builder = builder.unrestricted_vnis();
        }
        let classes = template.tcs.take().map(|Classes(classes)| classes);
        if let Some(classes) = template.switched(
            template.restricted_tcs,
            classes.or(among_members),
            Restriction::TrafficClasses,
        )? {
            builder = builder.traffic_classes(classes);
        }
        if let Some(LimitList(limits)) =
            template.switched(template.resource_limits, template.limits, Restriction::Limits)?
        {
            builder = builder.limits(limits);
        }
        builder.settings = template.settings();
        // HPE's tool accepts the switch for a list of VNIs too, where it means nothing.
        builder.settings.exclusive_cp &= range.is_some() || !template.is_of_hpe();
        builder.enabled(template.enable.is_none_or(|Switch(on)| on)).build()
    }
}

impl From<ServiceSpec> for Template {
    fn from(spec: ServiceSpec) -> Self {
        let (vnis, vni_range, unrestricted) = parts(spec.vnis);
        Self {
            members: spec.members.map(MemberList::from),
            vnis: vnis.map(Vnis::list),
            vni_range,
            restricted_vnis: unrestricted.then_some(Switch(false)),
            tcs: spec.traffic_classes.map(Classes),
            resource_limits: Some(Switch(spec.limits.is_some())),
            limits: spec.limits.map(LimitList),
            enable: (!spec.enabled).then_some(Switch(false)),
            ..Self::default()
        }
        .with_settings(spec.settings)
    }
}

fn parts(vnis: VniAccess) -> (Option<VniList>, Option<VniRange>, bool) {
    match vnis {
        VniAccess::List(list) => (Some(list), None, false),
        VniAccess::Range(range) => (None, Some(range), false),
        VniAccess::Unrestricted => (None, None, true),
    }
}

/// The form of a [`Service`]: that of a specification, with the fields that only a service has.
#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "the form is the kernel's")]
struct Report {
    id: ServiceId,
    enable: bool,
    is_system_svc: bool,
    restricted_members: bool,
    members: Members,
    restricted_vnis: bool,
    vnis: VniList,
    vni_range: Option<VniRange>,
    restricted_tcs: bool,
    tcs: TrafficClasses,
    resource_limits: bool,
    limits: LimitList,
    cntr_pool_id: u8,
}

impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (vnis, vni_range, _) = parts(self.vnis());
        Report {
            id: self.id(),
            enable: self.is_enabled(),
            is_system_svc: self.is_system(),
            restricted_members: self.members().is_some(),
            members: self.members().unwrap_or_default(),
            restricted_vnis: vnis.is_some(),
            vnis: vnis.unwrap_or_default(),
            vni_range,
            restricted_tcs: self.traffic_classes().is_some(),
            tcs: self.traffic_classes().unwrap_or_default(),
            resource_limits: self.is_limited(),
            limits: LimitList(self.limits()),
            cntr_pool_id: self.counter_pool(),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, I64Deserializer};

    use super::*;

    /// JSON has unsigned numbers where others have signed ones.
    #[test]
    fn switches_are_read_from_signed_numbers_too() {
        let read = |number: i64| {
            let deserializer: I64Deserializer<Error> = number.into_deserializer();
            Switch::deserialize(deserializer).map(|Switch(on)| on)
        };
        assert_eq!(read(0), Ok(false));
        assert_eq!(read(1), Ok(true));
        assert_eq!(
            read(-1).unwrap_err().to_string(),
            "invalid value: integer `-1`, expected true, false, 1 or 0"
        );
    }
}
