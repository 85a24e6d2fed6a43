//! Options for the settings of a service, and their values: all from the library's table.

use clap::builder::{BoolValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use cxi::{
    ServiceId, ServiceSetting, ServiceSpec, Services, SettingChange, SettingForm, SettingValue,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::args::number;

/// Settings that were given as options: those of a new service, or changes to one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SettingArgs<const CHANGES: bool>(Vec<(ServiceSetting, SettingValue)>);

impl<const CHANGES: bool> SettingArgs<CHANGES> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ServiceSetting, SettingValue)> + '_ {
        self.0.iter().copied()
    }

    fn offered() -> impl Iterator<Item = ServiceSetting> {
        ServiceSetting::ALL.into_iter().filter(|it| !CHANGES || it.change().is_some())
    }
}

impl SettingArgs<true> {
    /// The changes that can be made at that time.
    pub(crate) fn changed(
        &self,
        when: SettingChange,
    ) -> impl Iterator<Item = (ServiceSetting, SettingValue)> + '_ {
        self.iter().filter(move |(setting, _)| setting.change() == Some(when))
    }
}

impl<const CHANGES: bool> Args for SettingArgs<CHANGES> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::offered().map(|setting| {
            let option = option(setting);
            if CHANGES { option.group("changes") } else { option }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const CHANGES: bool> FromArgMatches for SettingArgs<CHANGES> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = Self::offered().filter_map(|setting| {
            Some((setting, *matches.get_one::<SettingValue>(setting.name())?))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn option(setting: ServiceSetting) -> Arg {
    let option = Arg::new(setting.name()).long(setting.name()).help(setting.help());
    match setting.form() {
        SettingForm::Switch => option
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .hide_possible_values(true)
            .default_missing_value("true")
            .value_parser(BoolValueParser::new().map(SettingValue::Switch)),
        _ => option.value_name("N").value_parser(move |text: &str| {
            let value = SettingValue::Number(number(text)?);
            let valid = ServiceSpec::builder().setting(setting, value);
            valid.map(|_| value).map_err(|error| error.to_string())
        }),
    }
}

/// The settings of a service that a command of its own reads, where the driver has them.
#[derive(Clone, PartialEq)]
pub(super) struct Queried(Vec<(ServiceSetting, Option<SettingValue>)>);

impl Queried {
    pub(super) fn of(services: &Services, id: ServiceId) -> Self {
        let queried = ServiceSetting::ALL.into_iter().filter(|setting| setting.is_queried());
        let value = |setting| (setting, services.setting(id, setting).ok().flatten());
        Self(queried.map(value).collect())
    }

    /// Title and value of those that are known.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'static str, SettingValue)> + '_ {
        self.0.iter().filter_map(|(setting, value)| Some((setting.title(), (*value)?)))
    }
}

impl Serialize for Queried {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (setting, value) in &self.0 {
            map.serialize_entry(setting.key(), value)?;
        }
        map.end()
    }
}
