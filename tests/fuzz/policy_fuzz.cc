// Policies of mixed precision in protobuf form.
#include "halftone/passes/amp/policy_proto.h"
#include "halftone/tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace amp = halftone::amp;
  const auto policy = amp::PolicyFromProtoBytes(halftone::testing::Bytes(data, size));
  if (!policy.ok()) return 0;
  ++halftone::testing::accepted;
  // What is accepted can be written, and reads back as it was.
  const auto again = amp::PolicyFromProtoBytes(amp::ToProtoBytes(*policy));
  halftone::testing::Require(again.ok(), halftone::Message(again.status()));
  halftone::testing::Require(*again == *policy, "policy");
  return 0;
}
