#include "halftone/graph/ir/proto_enums.h"

#include <iterator>

#include "halftone/core/check.h"
#include "halftone/proto/graph.pb.h"

namespace halftone::ir {
namespace {

template <typename T>
struct Pair {
  T ours;
  int number;
};

constexpr Pair<DType> kDTypes[] = {{DType::kF64, DTYPE_F64},       {DType::kF32, DTYPE_F32},
                                   {DType::kF16, DTYPE_F16},       {DType::kBF16, DTYPE_BF16},
                                   {DType::kI64, DTYPE_I64},       {DType::kI32, DTYPE_I32},
                                   {DType::kU8, DTYPE_U8},         {DType::kBool, DTYPE_BOOL},
                                   {DType::kF8E4M3, DTYPE_F8E4M3}, {DType::kF8E5M2, DTYPE_F8E5M2}};
static_assert(std::size(kDTypes) == kNumDTypes);
constexpr Pair<Layout> kLayouts[] = {{Layout::kPlain, LAYOUT_PLAIN},
                                     {Layout::kChannelsLast, LAYOUT_CHANNELS_LAST},
                                     {Layout::kChannelBlocks, LAYOUT_CHANNEL_BLOCKS}};
constexpr Pair<VariableKind> kKinds[] = {{VariableKind::kParameter, VARIABLE_KIND_PARAMETER},
                                         {VariableKind::kBuffer, VARIABLE_KIND_BUFFER},
                                         {VariableKind::kOptimizer, VARIABLE_KIND_OPTIMIZER},
                                         {VariableKind::kScaler, VARIABLE_KIND_SCALER},
                                         {VariableKind::kCounter, VARIABLE_KIND_COUNTER}};
constexpr Pair<AmpClass> kClasses[] = {{AmpClass::kAllow, AMP_CLASS_ALLOW},
                                       {AmpClass::kInfer, AMP_CLASS_INFER},
                                       {AmpClass::kClear, AMP_CLASS_CLEAR},
                                       {AmpClass::kDeny, AMP_CLASS_DENY}};

template <typename T, size_t n>
int NumberOf(const Pair<T> (&pairs)[n], T ours) {
  for (const Pair<T>& pair : pairs) {
    if (pair.ours == ours) return pair.number;
  }
  HT_CHECK(false, "an enumerator has no number in graph.proto");
  return 0;
}

template <typename T, size_t n>
std::optional<T> Find(const Pair<T> (&pairs)[n], int number) {
  for (const Pair<T>& pair : pairs) {
    if (pair.number == number) return pair.ours;
  }
  return std::nullopt;
}

}  // namespace

int ToProtoNumber(DType dtype) { return NumberOf(kDTypes, dtype); }
int ToProtoNumber(Layout layout) { return NumberOf(kLayouts, layout); }
int ToProtoNumber(VariableKind kind) { return NumberOf(kKinds, kind); }
int ToProtoNumber(AmpClass amp_class) { return NumberOf(kClasses, amp_class); }
std::optional<DType> DTypeFromProto(int number) { return Find(kDTypes, number); }
std::optional<Layout> LayoutFromProto(int number) { return Find(kLayouts, number); }
std::optional<VariableKind> VariableKindFromProto(int number) { return Find(kKinds, number); }
std::optional<AmpClass> AmpClassFromProto(int number) { return Find(kClasses, number); }

}  // namespace halftone::ir
