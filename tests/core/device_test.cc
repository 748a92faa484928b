#include "halftone/core/device.h"

#include <gtest/gtest.h>

namespace halftone {
namespace {

TEST(ParseDevice, ReadsWhatToStringWrites) {
  for (const Device& device :
       {Device::Cpu(), Device::Reference(), Device::Cuda(0), Device::Cuda(12), Device::Cuda(999)}) {
    const auto parsed = ParseDevice(device.ToString());
    ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
    EXPECT_EQ(*parsed, device);
  }
}

TEST(ParseDevice, CudaAloneIsTheFirst) { EXPECT_EQ(*ParseDevice("cuda"), Device::Cuda(0)); }

TEST(ParseDevice, RefusesOtherNames) {
  for (const char* text :
       {"", "gpu", "CPU", "cpu ", "cpu:0", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:01",
        "cuda:1x", "cuda:1000", "cuda:99999999999", "cuda0", "auto"}) {
    const auto parsed = ParseDevice(text);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
    EXPECT_EQ(Message(parsed.status()),
              Concat("device is \"", text, "\"; expected cpu, reference, cuda or cuda:0..999"));
  }
}

}  // namespace
}  // namespace halftone
