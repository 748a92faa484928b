// The stored form of a policy.
#include <gtest/gtest.h>

#include "halftone/passes/amp/policy_proto.h"
namespace halftone::testing {
namespace {

using amp::Policy;

TEST(AmpPolicyProto, RoundTripsAndDefaultsAreAbsent) {
  Policy policy;
  EXPECT_EQ(*amp::PolicyFromProtoBytes(amp::ToProtoBytes(policy)), policy);
  EXPECT_EQ(amp::ToProtoBytes(policy).size(), 2u) << "the version alone";
  policy.dtype = DType::kBF16;
  policy.allow = {"exp"};
  policy.infer = {"log", "sqrt"};
  policy.clear = {"conv2d[groups=2]"};
  policy.deny = {"head/*"};
  policy.low_outputs = true;
  policy.trim = false;
  policy.level = amp::Level::kOnlyMatmul;
  EXPECT_EQ(*amp::PolicyFromProtoBytes(amp::ToProtoBytes(policy)), policy);
}

TEST(AmpPolicyProto, RefusesWhatIsNoPolicy) {
  auto error = [](const std::string& bytes) { return amp::PolicyFromProtoBytes(bytes).status(); };
  EXPECT_EQ(error("\xff\xff").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(error("\xff\xff")), "amp policy: 2 bytes that are not a serialised policy");
  EXPECT_EQ(Message(error("")), "amp policy: version 0; expected 1");
  // Fields by hand: number and wire type, length, bytes.
  const std::string version("\x08\x01", 2);
  EXPECT_EQ(Message(error(version + "\x12\x03" + "f32")),
            "amp policy: dtype is \"f32\"; expected f16, bf16 or f8");
  const std::string empty_deny = version + std::string("\x32\0", 2);
  EXPECT_EQ(Message(error(empty_deny)),
            "amp policy: an entry of deny has 0 bytes; expected 1 to 256");
  EXPECT_EQ(error(empty_deny).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(error(version + std::string("\x48\x07", 2))),
            "amp policy: level 7; expected 0 to 3");
}

}  // namespace
}  // namespace halftone::testing
