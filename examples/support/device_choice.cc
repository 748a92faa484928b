#include "halftone/examples/support/device_choice.h"

#include "halftone/kernels/open_device.h"

namespace halftone::example {

absl::StatusOr<DeviceChoice> ChooseDevice(const std::string& text) {
  const bool automatic = text == "auto";
  const absl::StatusOr<Device> parsed = ParseDevice(automatic ? "cuda" : text);
  if (!parsed.ok() || parsed->kind == Device::Kind::kReference) {
    return InvalidArgument("expected cpu, cuda, cuda:N or auto");
  }
  const absl::StatusOr<std::string> name = kernels::OpenDevice(*parsed);
  if (name.ok()) return DeviceChoice{*parsed, *name, ""};
  if (!automatic) return name.status();
  return DeviceChoice{Device::Cpu(), "cpu", Concat("the CPU trains: ", Message(name.status()))};
}

}  // namespace halftone::example
