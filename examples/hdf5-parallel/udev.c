/* What hwloc wants of udev, which is not to be had as an archive: there are no devices. */
struct udev;
struct udev_device;

struct udev *udev_new(void);
struct udev *udev_unref(struct udev *udev);
struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
							   const char *name);
const char *udev_device_get_property_value(struct udev_device *device, const char *key);
struct udev_device *udev_device_unref(struct udev_device *device);

struct udev *udev_new(void)
{
	return 0;
}

struct udev *udev_unref(struct udev *udev)
{
	return udev;
}

struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev, const char *subsystem,
							   const char *name)
{
	(void)udev;
	(void)subsystem;
	(void)name;
	return 0;
}

const char *udev_device_get_property_value(struct udev_device *device, const char *key)
{
	(void)device;
	(void)key;
	return 0;
}

struct udev_device *udev_device_unref(struct udev_device *device)
{
	return device;
}
