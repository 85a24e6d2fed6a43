//! Every setting of a service, by the table alone.

use cxi::driver::Quirks;
use cxi::{
    DriverRelease, ErrorKind, InvalidSpec, ServiceId, ServiceSetting, SettingForm, SettingValue,
};

use crate::common::{create, modest_range, nic, root};

/// A value that is not the default, and one that the setting cannot have.
fn values(setting: ServiceSetting) -> (SettingValue, SettingValue) {
    let (switch, number) = (SettingValue::Switch(true), SettingValue::Number(2));
    match setting.form() {
        SettingForm::Switch => (switch, number),
        _ => (number, switch),
    }
}

#[test]
fn every_setting_is_made_told_and_changed() {
    let nic = nic(DriverRelease::NEWEST);
    let device = root(&nic).allow_quirks(Quirks::SWITCHED_EXCLUSIVE_CP);
    let services = device.services();
    for setting in ServiceSetting::ALL {
        let name = setting.name();
        let (value, other) = values(setting);
        let asked = || modest_range("1024-1039").setting(setting, value).unwrap();
        let id = create(&services, asked());
        let told = services.setting(id, setting).unwrap();
        assert!(
            told == Some(value) || (told.is_none() && !setting.is_queried()),
            "{name}: {told:?}"
        );
        let copied = services.spec(id).unwrap();
        services.destroy(id).unwrap();
        if told.is_some() {
            assert_eq!(services.setting(create(&services, asked()), setting).unwrap(), told);
            services.destroy(id).unwrap();
            let again = services.create(&copied).unwrap();
            assert_eq!(services.setting(again, setting).unwrap(), told, "{name}");
            services.destroy(again).unwrap();
        }

        let plain = create(&services, modest_range("1024-1039").enabled(false));
        assert_ne!(services.setting(plain, setting).unwrap(), Some(value), "{name}");
        let changed = services.set_setting(plain, setting, value);
        if setting.change().is_some() {
            changed.unwrap();
            assert_eq!(services.setting(plain, setting).unwrap(), Some(value), "{name}");
        } else {
            let error = changed.unwrap_err().to_string();
            assert!(error.contains(&format!("{name} of service 2 cannot be changed")), "{error}");
        }
        services.destroy(plain).unwrap();

        let error = modest_range("1024-1039").setting(setting, other).unwrap_err();
        assert_eq!(error, InvalidSpec::Setting { setting, value: other });
        let error = services.set_setting(ServiceId::DEFAULT, setting, other).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidSpec(_)), "{error}");
    }
}

#[test]
fn what_a_driver_lacks_is_unknown_but_its_service_is_looked_for() {
    let nic = nic(DriverRelease::Shs12_0);
    let services = root(&nic).services();
    for setting in ServiceSetting::ALL {
        let told = services.setting(ServiceId::DEFAULT, setting).unwrap();
        let lacks = !setting.needs().is_empty() || setting == ServiceSetting::ExclusiveVnis;
        assert_eq!(told.is_none(), lacks, "{}", setting.name());
        let error = services.setting(ServiceId::new(99).unwrap(), setting).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NoSuchService { .. }), "{error}");
    }
}
