#include "halftone/core/device.h"

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

}  // namespace halftone
