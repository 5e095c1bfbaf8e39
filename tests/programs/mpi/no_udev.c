/* The static hwloc wants functions of libudev, which has no static form. That there is no udev is an answer it takes. */
#include <stddef.h>

void *udev_new(void);
void *udev_unref(void *udev);
void *udev_device_unref(void *device);
void *udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem, const char *name);
const char *udev_device_get_property_value(void *device, const char *key);

void *udev_new(void)
{
	return NULL;
}

void *udev_unref(void *udev)
{
	return udev;
}

void *udev_device_unref(void *device)
{
	return device;
}

void *udev_device_new_from_subsystem_sysname(void *udev, const char *subsystem, const char *name)
{
	(void)udev;
	(void)subsystem;
	(void)name;
	return NULL;
}

const char *udev_device_get_property_value(void *device, const char *key)
{
	(void)device;
	(void)key;
	return NULL;
}
