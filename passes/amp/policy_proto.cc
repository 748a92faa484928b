#include "halftone/passes/amp/policy_proto.h"

#include <utility>

#include "halftone/passes/amp/policy_text.h"
#include "halftone/proto/amp_policy.pb.h"

namespace halftone::amp {
namespace {

constexpr uint32_t kVersion = 1;

using Entries = google::protobuf::RepeatedPtrField<std::string>;

absl::Status ReadEntries(const char* list, const Entries& from, std::vector<std::string>* to) {
  for (const std::string& entry : from) {
    if (entry.empty() || entry.size() > kMaxEntry) {
      return InvalidArgument("amp policy: an entry of ", list, " has ", entry.size(),
                             " bytes; expected 1 to ", kMaxEntry);
    }
    to->push_back(entry);
  }
  return absl::OkStatus();
}

constexpr std::pair<Level, AmpPolicyProto::Level> kStoredLevels[] = {
    {Level::kBalanced, AmpPolicyProto::BALANCED},
    {Level::kConservative, AmpPolicyProto::CONSERVATIVE},
    {Level::kOnlyMatmul, AmpPolicyProto::ONLY_MATMUL},
    {Level::kForce, AmpPolicyProto::FORCE}};

AmpPolicyProto::Level ToProto(Level level) {
  for (const auto& [ours, stored] : kStoredLevels) {
    if (ours == level) return stored;
  }
  return AmpPolicyProto::BALANCED;
}

absl::StatusOr<Level> FromProto(AmpPolicyProto::Level level) {
  for (const auto& [ours, stored] : kStoredLevels) {
    if (stored == level) return ours;
  }
  return InvalidArgument("amp policy: level ", static_cast<int>(level), "; expected 0 to 3");
}

}  // namespace

std::string ToProtoBytes(const Policy& policy) {
  AmpPolicyProto proto;
  proto.set_version(kVersion);
  if (policy.dtype) proto.set_dtype(Name(*policy.dtype));
  for (const std::string& entry : policy.allow) proto.add_allow(entry);
  for (const std::string& entry : policy.infer) proto.add_infer(entry);
  for (const std::string& entry : policy.clear) proto.add_clear(entry);
  for (const std::string& entry : policy.deny) proto.add_deny(entry);
  proto.set_low_outputs(policy.low_outputs);
  proto.set_no_trim(!policy.trim);
  proto.set_level(ToProto(policy.level));
  return proto.SerializeAsString();
}

absl::StatusOr<Policy> PolicyFromProtoBytes(const std::string& bytes) {
  AmpPolicyProto proto;
  if (!proto.ParseFromString(bytes)) {
    return DataLoss("amp policy: ", bytes.size(), " bytes that are not a serialised policy");
  }
  if (proto.version() != kVersion) {
    return InvalidArgument("amp policy: version ", proto.version(), "; expected ", kVersion);
  }
  Policy policy;
  if (!proto.dtype().empty()) {
    policy.dtype = ParsePolicyDType(proto.dtype());
    if (!policy.dtype) {
      return InvalidArgument("amp policy: dtype is \"", proto.dtype(), "\"; expected ",
                             kPolicyDTypes);
    }
  }
  HT_RETURN_IF_ERROR(ReadEntries("allow", proto.allow(), &policy.allow));
  HT_RETURN_IF_ERROR(ReadEntries("infer", proto.infer(), &policy.infer));
  HT_RETURN_IF_ERROR(ReadEntries("clear", proto.clear(), &policy.clear));
  HT_RETURN_IF_ERROR(ReadEntries("deny", proto.deny(), &policy.deny));
  policy.low_outputs = proto.low_outputs();
  policy.trim = !proto.no_trim();
  HT_ASSIGN_OR_RETURN(policy.level, FromProto(proto.level()));
  return policy;
}

}  // namespace halftone::amp
