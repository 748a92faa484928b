// The emulated cuDNN: descriptors of its graph API as bags of attributes. Which statuses misuse
// gives was found by trying the library (9.19) where it works without a GPU; where it accepts a
// mistake in silence or crashes, this one refuses and says why.
#pragma once

#include <cudnn_graph.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace halftone::emulation::cudnn {

struct Descriptor;
using DescriptorPtr = std::shared_ptr<const Descriptor>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count = 0;
  std::vector<char> bytes;                 // of values
  std::vector<DescriptorPtr> descriptors;  // CUDNN_TYPE_BACKEND_DESCRIPTOR
};

struct Descriptor {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;

  bool Has(cudnnBackendAttributeName_t name) const { return attributes.count(name) > 0; }
  // Empty if not set.
  template <typename T>
  std::vector<T> Values(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.bytes.size() / sizeof(T));
    if (!values.empty())
      std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T Value(cudnnBackendAttributeName_t name, T otherwise) const {
    const std::vector<T> values = Values<T>(name);
    return values.empty() ? otherwise : values[0];
  }
  std::vector<int64_t> Ints(cudnnBackendAttributeName_t name) const {
    return Values<int64_t>(name);
  }
  // Null if not set.
  const Descriptor* Reference(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() || found->second.descriptors.empty()
               ? nullptr
               : found->second.descriptors[0].get();
  }
  std::vector<DescriptorPtr> References(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? std::vector<DescriptorPtr>() : found->second.descriptors;
  }
  template <typename T>
  void Put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t value_type,
           const std::vector<T>& values) {
    Attribute& attribute = attributes[name];
    attribute.type = value_type;
    attribute.count = static_cast<int64_t>(values.size());
    const auto* const first = reinterpret_cast<const char*>(values.data());
    attribute.bytes.assign(first, first + values.size() * sizeof(T));
  }
  void PutDescriptors(cudnnBackendAttributeName_t name, std::vector<DescriptorPtr> values) {
    Attribute& attribute = attributes[name];
    attribute.type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    attribute.count = static_cast<int64_t>(values.size());
    attribute.descriptors = std::move(values);
  }
};

// An attribute of a kind of descriptor: its type, how many values, and whether a program may set
// it.
struct Spec {
  cudnnBackendDescriptorType_t descriptor;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t max_count;
  bool settable = true;
};
// cudnn_attributes.cc; null for an attribute that descriptors of the type do not have.
const Spec* FindSpec(cudnnBackendDescriptorType_t descriptor, cudnnBackendAttributeName_t name);
bool IsKnown(cudnnBackendDescriptorType_t type);

// What is behind cudnnHandle_t.
struct Handle {
  int device = 0;             // current when it was made
  std::atomic<int> calls{0};  // that use it now
  cudaStream_t stream = nullptr;
};
// Null, having said so, for one that was not made or is destroyed.
Handle* FindHandle(cudnnHandle_t handle);

// Keeps the text for cudnnGetLastErrorString and, unless the status is that something is not
// supported, reports it.
cudnnStatus_t Refuse(cudnnStatus_t status, const std::string& why);

// What cudnnBackendFinalize checks, and computes where others read it. cudnn_finalize.cc
cudnnStatus_t Finalize(Descriptor& descriptor);

// A convolution as its graph says. cudnn_graph.cc
enum class Product : uint8_t { kForward, kGradInput, kGradWeight };
struct Operand {
  int64_t uid = 0;
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  std::vector<int64_t> dims, strides;
  int64_t alignment = 1;
  int64_t elements() const;
  int64_t bytes() const;  // to its last element
};
struct Convolution {
  Product product = Product::kForward;
  Operand x, w, y;
  bool has_bias = false;
  Operand bias;
  std::vector<int64_t> padding, stride, dilation;
  double alpha = 1, beta = 0;
};
cudnnStatus_t ReadGraph(const Descriptor& graph, Convolution& conv);
// The attributes of a product's operation.
struct Names {
  cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
};
Names NamesOf(Product product);
// Whether the type is that of a convolution's operation, and of which.
bool ProductOf(cudnnBackendDescriptorType_t type, Product& product);

size_t SizeOf(cudnnDataType_t dtype);  // 0: not a type that is emulated

// Whether the graph has a product of matrices: attention or its gradient. cudnn_attention.cc
bool IsAttention(const Descriptor& graph);
// What the operations of such a graph say of one another, and whether it is one that the library's
// engines know.
cudnnStatus_t CheckAttention(const Descriptor& graph);
bool SupportsAttention(const Descriptor& graph);
// The tensors that a variant pack must have. Those by value are read on the host.
struct AttentionOperand {
  Operand operand;
  bool by_value = false;
};
std::vector<AttentionOperand> AttentionOperands(const Descriptor& graph);
// Plain loops; `data` is of the operands by their ids. `wrong`: NaN. cudnn_attention_run.cc
void RunAttention(const Descriptor& graph, const std::map<int64_t, void*>& data, bool wrong);
// A tensor as an operand; what is between two operations; by value. cudnn_graph.cc
Operand OperandOf(const Descriptor& tensor);
bool IsVirtual(const Descriptor& tensor);
// An element as a number. cudnn_execute.cc
float LoadElement(const void* p, cudnnDataType_t dtype, int64_t i);
void StoreElement(void* p, cudnnDataType_t dtype, int64_t i, float value);
// What finalizing products, reductions, reshapes and pointwise operations but additions checks.
// cudnn_attention.cc
cudnnStatus_t FinalizeAttentionPart(const Descriptor& descriptor);

// The emulated engines, by global index. cudnn_engines.cc
inline constexpr int64_t kEngineCount = 8;
inline constexpr int64_t kEngineThatFails = 7;  // when its plan is executed
struct Knob {
  cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
  int64_t minimum = 0, maximum = 0;
  // As of the real library, not every value of the range has a kernel: those from here on are refused.
  int64_t first_refused = 0;
  int64_t workspace_bytes = 0;  // as often as the value says

  bool Takes(int64_t value) const { return value >= minimum && value < first_refused; }
};
struct Engine {
  bool supported = false;
  std::vector<cudnnBackendNumericalNote_t> notes;
  int64_t workspace_bytes = 0;
  std::vector<Knob> knobs;

  const Knob* Find(cudnnBackendKnobType_t type) const;  // null if it has no such knob
};
// How long each run of a configuration of an engine that splits its sums takes beside its arithmetic: nothing in
// kFastestSplit parts, the more the further from it.
inline constexpr int64_t kFastestSplit = 8;
double SplitMilliseconds(const Engine& engine, const Descriptor& config);
Engine EngineFor(int64_t index, const Descriptor& graph);
// Configurations in the order of a heuristic's mode.
std::vector<DescriptorPtr> Recommend(const DescriptorPtr& graph, cudnnBackendHeurMode_t mode);

// cudnn_execute.cc
cudnnStatus_t Execute(const Handle& handle, const Descriptor& plan, const Descriptor& pack);

}  // namespace halftone::emulation::cudnn
