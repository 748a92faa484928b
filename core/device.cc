#include "halftone/core/device.h"

#include <charconv>

#include "halftone/core/strings.h"

namespace halftone {

std::string Device::ToString() const {
  switch (kind) {
    case Kind::kReference:
      return "reference";
    case Kind::kCpu:
      return "cpu";
    case Kind::kCuda:
      return Concat("cuda:", index);
  }
  return "unknown";
}

absl::StatusOr<Device> ParseDevice(const std::string& text) {
  if (text == "cuda") return Device::Cuda(0);
  constexpr int kMaxIndex = 999;
  for (const Device& device : {Device::Cpu(), Device::Reference()}) {
    if (text == device.ToString()) return device;
  }
  // The names that ToString gives: no sign, blank or leading zero.
  int index = 0;
  const char* const end = text.data() + text.size();
  const size_t digits = std::string("cuda:").size();
  if (text.rfind("cuda:", 0) == 0) {
    const auto [stop, error] = std::from_chars(text.data() + digits, end, index);
    const Device device = Device::Cuda(index);
    if (error == std::errc() && stop == end && index >= 0 && index <= kMaxIndex &&
        device.ToString() == text) {
      return device;
    }
  }
  return InvalidArgument("device is \"", text, "\"; expected cpu, reference, cuda or cuda:0..",
                         kMaxIndex);
}

}  // namespace halftone
