// Policies of mixed precision in protobuf form, binary and text.
#include "halftone/passes/amp/policy_proto.h"
#include "halftone/tests/fuzz/fuzz_target.h"

namespace {

// What is accepted can be written, and reads back as it was.
void CheckPolicy(const absl::StatusOr<halftone::amp::Policy>& policy,
                 const absl::StatusOr<halftone::amp::Policy>& again) {
  ++halftone::testing::accepted;
  halftone::testing::Require(again.ok(), halftone::Message(again.status()));
  halftone::testing::Require(*again == *policy, "policy");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace amp = halftone::amp;
  const std::string bytes = halftone::testing::Bytes(data, size);
  const auto policy = amp::PolicyFromProtoBytes(bytes);
  if (policy.ok()) CheckPolicy(policy, amp::PolicyFromProtoBytes(amp::ToProtoBytes(*policy)));
  const auto text = amp::Policy::Parse(bytes);
  if (text.ok()) CheckPolicy(text, amp::Policy::Parse(text->ToString()));
  return 0;
}
