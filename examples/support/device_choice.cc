#include "halftone/examples/support/device_choice.h"

#include "halftone/kernels/device_backend.h"

namespace halftone::example {

absl::StatusOr<DeviceChoice> ChooseDevice(const std::string& text) {
  const bool automatic = text == "auto";
  const absl::StatusOr<Device> parsed = ParseDevice(automatic ? "cuda" : text);
  if (!parsed.ok() || parsed->kind == Device::Kind::kReference) {
    return InvalidArgument("expected cpu, cuda, cuda:N or auto");
  }
  if (parsed->kind == Device::Kind::kCpu) return DeviceChoice{*parsed, parsed->ToString(), ""};
  const absl::StatusOr<kernels::DeviceBackend*> backend = kernels::OpenCuda(parsed->index);
  if (backend.ok()) return DeviceChoice{*parsed, (*backend)->description(), ""};
  if (!automatic) return backend.status();
  return DeviceChoice{Device::Cpu(), "cpu", Concat("the CPU trains: ", Message(backend.status()))};
}

}  // namespace halftone::example
