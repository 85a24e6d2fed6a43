//! Code that follows from a row of the table of settings alone.

use std::fmt;

use cxi_ioctl::Opcode;

use super::settings::with_settings;
use super::{InvalidSpec, ServiceSpec, ServiceSpecBuilder, Services};
use crate::driver::Capabilities;
use crate::error::Result;
use crate::{LnisPerRgid, ServiceId};

macro_rules! define {
    ($(
        $(#[$doc:meta])*
        $name:ident: $given:ty as $kept:ty {
            key $key:literal,
            variant $variant:ident, name $option:literal, title $title:literal,
            help $help:literal,
            told by $told:ident $told_doc:literal,
            needs $needs:expr,
            read $read:ident $($reader:ident)?,
            write $write:ident $($first:ident $later:ident)?,
        }
    )*) => {
        /// The settings of a specification, as it keeps them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[allow(clippy::struct_excessive_bools, reason = "each answers a separate question")]
        pub(super) struct Settings {
            $( pub(super) $name: $kept, )*
        }

        impl ServiceSpecBuilder {
            $(
                $(#[$doc])*
                pub fn $name(mut self, $name: $given) -> Self {
                    self.settings.$name = $name.into();
                    self
                }
            )*

            /// Sets a setting that the program need not know, to a value of its
            /// [form](ServiceSetting::form).
            ///
            /// # Errors
            ///
            /// The setting has no such value.
            pub fn setting(
                self,
                setting: ServiceSetting,
                value: SettingValue,
            ) -> Result<Self, InvalidSpec> {
                Ok(match setting {
                    $( ServiceSetting::$variant => {
                        self.$name(<$kept as Kept>::given_as(setting, value)?)
                    } )*
                })
            }
        }

        impl ServiceSpec {
            $(
                #[doc = $told_doc]
                #[must_use]
                pub fn $told(&self) -> $kept {
                    self.settings.$name
                }
            )*
        }

        /// One of the settings of a service besides its members, VNIs, traffic classes and limits, for
        /// programs that offer all of them.
        ///
        /// ```
        /// use cxi::{ServiceSetting, ServiceSpec, SettingForm, SettingValue, Vni};
        ///
        /// let mut builder = ServiceSpec::builder().vni(Vni::new(1024)?);
        /// for setting in ServiceSetting::ALL {
        ///     println!("--{}: {}", setting.name(), setting.help());
        ///     if setting.form() == SettingForm::Number {
        ///         builder = builder.setting(setting, SettingValue::Number(2))?;
        ///     }
        /// }
        /// assert_eq!(builder.build()?.counter_pool(), 2);
        /// # Ok::<_, Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ServiceSetting {
            $(
                #[doc = concat!("[`", stringify!($name), "`](ServiceSpecBuilder::", stringify!($name), ").")]
                $variant,
            )*
        }

        impl ServiceSetting {
            /// Every setting, in the order in which they are shown.
            pub const ALL: [Self; [$( Self::$variant, )*].len()] = [$( Self::$variant, )*];

            /// Returns the name for people, such as of an option: `exclusive-cp`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $option, )* }
            }

            /// Returns the key in JSON, YAML and HPE's templates.
            #[must_use]
            pub const fn key(self) -> &'static str {
                match self { $( Self::$variant => $key, )* }
            }

            /// Returns the heading of its value where a service is shown.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $( Self::$variant => $title, )* }
            }

            /// Returns what it does, in a sentence without a period, such as for an option.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $( Self::$variant => $help, )* }
            }

            /// Returns the form of its values.
            #[must_use]
            pub const fn form(self) -> SettingForm {
                match self { $( Self::$variant => <$kept as Kept>::FORM, )* }
            }

            /// Returns what a driver must be able to do for any value but the default.
            #[must_use]
            pub const fn needs(self) -> Capabilities {
                match self { $( Self::$variant => $needs, )* }
            }

            /// Returns whether a command of its own reads it. Others are in the driver's description of
            /// a service ([`Service`](super::Service)), or are not stored.
            #[must_use]
            pub const fn is_queried(self) -> bool {
                match self { $( Self::$variant => matches!(Source::$read, Source::command), )* }
            }

            /// Returns when [`Services::set_setting`] can change it; `None` for never.
            #[must_use]
            pub const fn change(self) -> Option<SettingChange> {
                match self { $( Self::$variant => define!(@change $write), )* }
            }
        }

        impl Services {
            /// Returns a setting of a service; `None` if the driver does not report it, or does not
            /// have it.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::NoSuchService`](crate::ErrorKind::NoSuchService) (EINVAL).
            pub fn setting(
                &self,
                id: ServiceId,
                setting: ServiceSetting,
            ) -> Result<Option<SettingValue>> {
                let needs = setting.needs();
                if !needs.is_empty() && !self.device.driver()?.can(needs) {
                    self.read(id)?;
                    return Ok(None);
                }
                match setting {
                    $( ServiceSetting::$variant => define!(@value self id $kept, $read $($reader)?), )*
                }
            }

            /// Changes a setting of a service: the method of the setting, which says what it refuses.
            ///
            /// # Errors
            ///
            /// - [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput), nothing was sent: the
            ///   setting [cannot be changed](ServiceSetting::change).
            /// - [`ErrorKind::InvalidSpec`](crate::ErrorKind::InvalidSpec), nothing was sent: it has no
            ///   such value.
            /// - The errors of the method.
            pub fn set_setting(
                &self,
                id: ServiceId,
                setting: ServiceSetting,
                value: SettingValue,
            ) -> Result<()> {
                let refused = match setting {
                    $( ServiceSetting::$variant => match <$kept as Kept>::given_as(setting, value) {
                        Ok(given) => return define!(@set self id setting given, $($later)?),
                        Err(error) => error,
                    }, )*
                };
                Err(crate::Error::invalid(refused).on(self.device.id()))
            }

            /// Reads the settings that take a command each.
            pub(super) fn query_settings(
                &self,
                id: ServiceId,
                settings: &mut Settings,
            ) -> Result<()> {
                $( define!(@query self id settings.$name, $read $($reader)?); )*
                Ok(())
            }

            /// Sends the settings of a new service that can be written at any time, or those that can
            /// be written only while it is disabled.
            pub(super) fn write_settings(
                &self,
                id: ServiceId,
                settings: &Settings,
                when: SettingChange,
            ) -> Result<()> {
                for setting in settings.given().filter(|it| it.change() == Some(when)) {
                    match setting {
                        $( ServiceSetting::$variant => {
                            define!(@first self id settings.$name, $($first)?);
                        } )*
                    }
                }
                Ok(())
            }
        }

        impl Settings {
            /// Those with another value than the default.
            pub(super) fn given(&self) -> impl Iterator<Item = ServiceSetting> + '_ {
                ServiceSetting::ALL.into_iter().filter(|setting| match setting {
                    $( ServiceSetting::$variant => self.$name.given().is_some(), )*
                })
            }

            /// Those that are part of the driver's description of a service.
            pub(super) fn described(service: &super::Service) -> Self {
                let mut settings = Self::default();
                $( define!(@described service settings.$name, $read $($reader)?); )*
                settings
            }
        }
    };

    (@change never) => { None };
    (@change always) => { Some(SettingChange::Always) };
    (@change disabled) => { Some(SettingChange::WhileDisabled) };

    (@value $services:ident $id:ident $kept:ty, command $reader:ident) => {
        Ok(<$kept>::from($services.$reader($id)?).value())
    };
    (@value $services:ident $id:ident $kept:ty, descriptor $reader:ident) => {
        Ok(<$kept>::from($services.read($id)?.$reader()).value())
    };
    (@value $services:ident $id:ident $kept:ty, nowhere) => {
        $services.read($id).map(|_| None)
    };

    (@query $services:ident $id:ident $settings:ident.$name:ident, command $reader:ident) => {
        $settings.$name = $services.$reader($id)?.into();
    };
    (@query $services:ident $id:ident $settings:ident.$name:ident, $other:ident $($reader:ident)?) => {};

    (@described $service:ident $settings:ident.$name:ident, descriptor $reader:ident) => {
        $settings.$name = $service.$reader().into();
    };
    (@described $service:ident $settings:ident.$name:ident, $other:ident $($reader:ident)?) => {};

    (@set $services:ident $id:ident $setting:ident $given:ident, $later:ident) => {
        $services.$later($id, $given)
    };
    (@set $services:ident $id:ident $setting:ident $given:ident,) => {{
        let _ = $given;
        Err($services.unchangeable($id, $setting))
    }};

    (@first $services:ident $id:ident $settings:ident.$name:ident, $first:ident) => {
        if let Some(given) = $settings.$name.given() {
            $services.$first($id, given)?;
        }
    };
    (@first $services:ident $id:ident $settings:ident.$name:ident,) => {};
}

with_settings!(define);

/// Place from which a setting is read, in the words of the table.
#[allow(non_camel_case_types, reason = "words of the table")]
enum Source {
    command,
    descriptor,
    nowhere,
}

/// Form of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingForm {
    /// On or off.
    Switch,
    /// A number.
    Number,
}

/// Time at which a setting of a service can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingChange {
    /// Whenever the service has no LNI.
    Always,
    /// Only while the service is disabled.
    WhileDisabled,
}

/// A value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
#[non_exhaustive]
pub enum SettingValue {
    /// On or off.
    Switch(bool),
    /// A number.
    Number(u32),
}

/// As shown to people: `yes`, `no`, or the number.
impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(true) => f.pad("yes"),
            Self::Switch(false) => f.pad("no"),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// A value as a specification keeps it.
trait Kept: Copy {
    /// A value as the builder and the commands take it.
    type Given;
    const FORM: SettingForm;

    /// The value, unless it is the default.
    fn given(self) -> Option<Self::Given>;
    fn value(self) -> Option<SettingValue>;
    fn given_as(setting: ServiceSetting, value: SettingValue) -> Result<Self::Given, InvalidSpec>;
}

impl Kept for bool {
    type Given = bool;
    const FORM: SettingForm = SettingForm::Switch;

    fn given(self) -> Option<bool> {
        self.then_some(true)
    }

    fn value(self) -> Option<SettingValue> {
        Some(SettingValue::Switch(self))
    }

    fn given_as(setting: ServiceSetting, value: SettingValue) -> Result<bool, InvalidSpec> {
        match value {
            SettingValue::Switch(on) => Ok(on),
            SettingValue::Number(_) => Err(InvalidSpec::Setting { setting, value }),
        }
    }
}

impl Kept for u8 {
    type Given = u8;
    const FORM: SettingForm = SettingForm::Number;

    fn given(self) -> Option<u8> {
        (self != 0).then_some(self)
    }

    fn value(self) -> Option<SettingValue> {
        Some(SettingValue::Number(self.into()))
    }

    fn given_as(setting: ServiceSetting, value: SettingValue) -> Result<u8, InvalidSpec> {
        let number = number(setting, value)?;
        u8::try_from(number).map_err(|_| InvalidSpec::Setting { setting, value })
    }
}

impl Kept for Option<LnisPerRgid> {
    type Given = LnisPerRgid;
    const FORM: SettingForm = SettingForm::Number;

    fn given(self) -> Self {
        self
    }

    fn value(self) -> Option<SettingValue> {
        self.map(|count| SettingValue::Number(count.get()))
    }

    fn given_as(setting: ServiceSetting, value: SettingValue) -> Result<LnisPerRgid, InvalidSpec> {
        Ok(LnisPerRgid::new(number(setting, value)?)?)
    }
}

fn number(setting: ServiceSetting, value: SettingValue) -> Result<u32, InvalidSpec> {
    match value {
        SettingValue::Number(number) => Ok(number),
        SettingValue::Switch(_) => Err(InvalidSpec::Setting { setting, value }),
    }
}

impl Services {
    fn unchangeable(&self, id: ServiceId, setting: ServiceSetting) -> crate::Error {
        let name = setting.name();
        let text = format!(
            "{name} of service {id} cannot be changed: destroy the service and create another"
        );
        self.device.invalid(Opcode::SVC_UPDATE, text)
    }
}
