// The emulated cuDNN's plans carried out; of convolutions, plain loops over the window with sums in
// f32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include "halftone/tests/cuda_emulation/cudnn_descriptor.h"
#include "halftone/tests/cuda_emulation/library_work.h"

namespace halftone::emulation::cudnn {

float LoadElement(const void* p, cudnnDataType_t dtype, int64_t i) {
  switch (dtype) {
    case CUDNN_DATA_HALF:
      return __half2float(static_cast<const __half*>(p)[i]);
    case CUDNN_DATA_BFLOAT16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
    default:
      return static_cast<const float*>(p)[i];
  }
}

void StoreElement(void* p, cudnnDataType_t dtype, int64_t i, float value) {
  switch (dtype) {
    case CUDNN_DATA_HALF:
      static_cast<__half*>(p)[i] = __float2half(value);
      break;
    case CUDNN_DATA_BFLOAT16:
      static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16(value);
      break;
    default:
      static_cast<float*>(p)[i] = value;
  }
}

namespace {

// The extents of spatial axes as depth, height and width; a depth of 1 where there is none.
struct Window {
  int64_t d, h, w;
  int64_t size() const { return d * h * w; }
};
Window WindowOf(const std::vector<int64_t>& values, size_t first, int64_t no_depth = 1) {
  return values.size() - first == 3 ? Window{values[first], values[first + 1], values[first + 2]}
                                    : Window{no_depth, values[first], values[first + 1]};
}

// Calls visit(offset) for the elements in the order of the dimensions.
template <typename Visit>
void ForEachOffset(const Operand& o, const Visit& visit) {
  const Window dims = WindowOf(o.dims, 2), strides = WindowOf(o.strides, 2);
  for (int64_t a = 0; a < o.dims[0]; ++a) {
    for (int64_t b = 0; b < o.dims[1]; ++b) {
      for (int64_t i = 0; i < dims.d; ++i) {
        for (int64_t j = 0; j < dims.h; ++j) {
          for (int64_t k = 0; k < dims.w; ++k) {
            visit(a * o.strides[0] + b * o.strides[1] + i * strides.d + j * strides.h +
                  k * strides.w);
          }
        }
      }
    }
  }
}

// Ten of 23 bits behind the point, to nearest.
float ToTf32(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isfinite(value)) bits = (bits + 0x0fff + ((bits >> 13) & 1)) & ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

std::vector<float> LoadDense(const Operand& o, const void* data, bool tf32) {
  std::vector<float> values;
  values.reserve(o.elements());
  ForEachOffset(o, [&](int64_t at) {
    const float value = LoadElement(data, o.dtype, at);
    values.push_back(tf32 ? ToTf32(value) : value);
  });
  return values;
}

// Calls visit(x, w, y) with the dense positions of every product of the convolution.
template <typename Visit>
void ForEachProduct(const Convolution& v, const Visit& visit) {
  const Window x = WindowOf(v.x.dims, 2), w = WindowOf(v.w.dims, 2), y = WindowOf(v.y.dims, 2);
  const Window stride = WindowOf(v.stride, 0), dilation = WindowOf(v.dilation, 0);
  const Window padding = WindowOf(v.padding, 0, 0);
  const int64_t channels = v.x.dims[1], of_group = v.w.dims[1], filters = v.w.dims[0];
  const int64_t o_group = filters / (channels / of_group);
  // Calls visit with the products of output position `to` and channel planes that begin at `from`
  // and `filter`.
  const auto position = [&](int64_t from, int64_t filter, int64_t to) {
    const int64_t z = to / y.w / y.h % y.d, i = to / y.w % y.h, j = to % y.w;
    for (int64_t a = 0; a < w.d; ++a) {
      for (int64_t k = 0; k < w.h; ++k) {
        for (int64_t l = 0; l < w.w; ++l, ++filter) {
          const int64_t depth = z * stride.d - padding.d + a * dilation.d;
          const int64_t row = i * stride.h - padding.h + k * dilation.h;
          const int64_t column = j * stride.w - padding.w + l * dilation.w;
          if (depth < 0 || depth >= x.d || row < 0 || row >= x.h || column < 0 || column >= x.w) {
            continue;
          }
          visit(from + (depth * x.h + row) * x.w + column, filter, to);
        }
      }
    }
  };
  for (int64_t n = 0; n < v.y.dims[0]; ++n) {
    for (int64_t o = 0; o < filters; ++o) {
      for (int64_t p = 0; p < y.size(); ++p) {
        for (int64_t c = 0; c < of_group; ++c) {
          position((n * channels + o / o_group * of_group + c) * x.size(),
                   (o * of_group + c) * w.size(), (n * filters + o) * y.size() + p);
        }
      }
    }
  }
}

struct Pointers {
  void *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr;
};

void Run(const Convolution& v, const Engine& engine, const Pointers& p) {
  const auto has = [&engine](cudnnBackendNumericalNote_t note) {
    return std::count(engine.notes.begin(), engine.notes.end(), note) > 0;
  };
  const bool tf32 = v.x.dtype == CUDNN_DATA_FLOAT && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  // Whoever ran one of these has not read its notes.
  const bool wrong = has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ||
                     has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
                     has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  std::vector<float> sums, x, w, y;
  const Operand& result = v.product == Product::kForward     ? v.y
                          : v.product == Product::kGradInput ? v.x
                                                             : v.w;
  void* const to = v.product == Product::kForward     ? p.y
                   : v.product == Product::kGradInput ? p.x
                                                      : p.w;
  if (v.product != Product::kGradInput) x = LoadDense(v.x, p.x, tf32);
  if (v.product != Product::kGradWeight) w = LoadDense(v.w, p.w, tf32);
  if (v.product != Product::kForward) y = LoadDense(v.y, p.y, tf32);
  sums.assign(result.elements(), 0.0F);
  if (v.product == Product::kForward) {
    ForEachProduct(v, [&](int64_t i, int64_t k, int64_t o) { sums[o] += x[i] * w[k]; });
  } else if (v.product == Product::kGradInput) {
    ForEachProduct(v, [&](int64_t i, int64_t k, int64_t o) { sums[i] += w[k] * y[o]; });
  } else {
    ForEachProduct(v, [&](int64_t i, int64_t k, int64_t o) { sums[k] += x[i] * y[o]; });
  }
  size_t at = 0;
  const size_t plane = WindowOf(result.dims, 2).size(), channels = result.dims[1];
  ForEachOffset(result, [&](int64_t offset) {
    auto value = static_cast<float>(v.alpha * sums[at]);
    if (v.beta != 0) value += static_cast<float>(v.beta) * LoadElement(to, result.dtype, offset);
    if (v.has_bias)
      value += LoadElement(p.bias, v.bias.dtype, at / plane % channels * v.bias.strides[1]);
    if (wrong) value = std::numeric_limits<float>::quiet_NaN();
    StoreElement(to, result.dtype, offset, value);
    ++at;
  });
}

// The pointer of an operand, or null, having said why.
cudnnStatus_t FindPointer(const std::map<int64_t, void*>& pack, const Operand& o, void*& pointer) {
  const std::string what = "execution: tensor " + std::to_string(o.uid);
  const auto found = pack.find(o.uid);
  if (found == pack.end())
    return Refuse(CUDNN_STATUS_BAD_PARAM, what + " is not in the variant pack");
  pointer = found->second;
  if (reinterpret_cast<uintptr_t>(pointer) % o.alignment != 0) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, what + " is not aligned as it says");
  }
  if (!IsDeviceMemory(pointer, o.bytes())) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, what + " needs " + std::to_string(o.bytes()) +
                                              " bytes at " + DescribePointer(pointer));
  }
  return CUDNN_STATUS_SUCCESS;
}

// A number by value, which is read at once.
cudnnStatus_t FindNumber(const std::map<int64_t, void*>& pack, const Operand& o, float& number) {
  const auto found = pack.find(o.uid);
  if (found == pack.end() || found->second == nullptr || IsDeviceMemory(found->second, 1)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "execution: tensor " + std::to_string(o.uid) +
                                              " needs a pointer to a number on the host");
  }
  number = LoadElement(found->second, o.dtype, 0);
  return CUDNN_STATUS_SUCCESS;
}

// The work of an engine on the operands of a variant pack, or why there can be none.
cudnnStatus_t PrepareConvolution(const Descriptor& graph, const Engine& how,
                                 const std::map<int64_t, void*>& pack,
                                 std::function<void()>& work) {
  Convolution conv;
  ReadGraph(graph, conv);
  Pointers p;
  std::vector<std::pair<const Operand*, void**>> operands = {
      {&conv.x, &p.x}, {&conv.w, &p.w}, {&conv.y, &p.y}};
  if (conv.has_bias) operands.emplace_back(&conv.bias, &p.bias);
  if (pack.size() != operands.size()) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "execution: a variant pack of other tensors");
  }
  for (const auto& [operand, pointer] : operands) {
    const cudnnStatus_t status = FindPointer(pack, *operand, *pointer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  work = [conv, how, p] { Run(conv, how, p); };
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t PrepareAttention(const DescriptorPtr& graph, const Engine& how,
                               const std::map<int64_t, void*>& pack, std::function<void()>& work) {
  const std::vector<AttentionOperand> operands = AttentionOperands(*graph);
  if (pack.size() != operands.size()) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "execution: a variant pack of other tensors");
  }
  std::map<int64_t, void*> data;
  auto numbers = std::make_shared<std::map<int64_t, float>>();
  for (const AttentionOperand& o : operands) {
    void*& pointer = data[o.operand.uid];
    const cudnnStatus_t status = o.by_value ? FindNumber(pack, o.operand, (*numbers)[o.operand.uid])
                                            : FindPointer(pack, o.operand, pointer);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (o.by_value) pointer = &(*numbers)[o.operand.uid];
  }
  const bool wrong =
      std::count(how.notes.begin(), how.notes.end(), CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) > 0;
  work = [graph, data, numbers, wrong] { RunAttention(*graph, data, wrong); };
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t Execute(const Handle& handle, const Descriptor& plan, const Descriptor& pack) {
  if (plan.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || !plan.finalized ||
      pack.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || !pack.finalized) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "execution: plan or variant pack");
  }
  const Descriptor& config = *plan.Reference(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Descriptor& engine = *config.Reference(CUDNN_ATTR_ENGINECFG_ENGINE);
  const DescriptorPtr graph = engine.References(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)[0];
  const auto index = engine.Value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  if (index == kEngineThatFails) return CUDNN_STATUS_EXECUTION_FAILED;
  const Engine how = EngineFor(index, *graph);

  const auto uids = pack.Values<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto data = pack.Values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<int64_t, void*> pointer_of;
  for (size_t i = 0; i < uids.size(); ++i) pointer_of[uids[i]] = data[i];
  std::function<void()> work;
  const cudnnStatus_t status = IsAttention(*graph)
                                   ? PrepareAttention(graph, how, pointer_of, work)
                                   : PrepareConvolution(*graph, how, pointer_of, work);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  void* const workspace = pack.Value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
  const auto workspace_bytes = plan.Value<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 0);
  if (workspace_bytes > 0 && !IsDeviceMemory(workspace, workspace_bytes)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "execution: a workspace of " +
                                              std::to_string(workspace_bytes) +
                                              " bytes is needed, at " + DescribePointer(workspace));
  }
  int device = 0;
  cudaGetDevice(&device);
  if (device != handle.device) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "execution: a handle of device " +
                                              std::to_string(handle.device) + " on device " +
                                              std::to_string(device));
  }
  const std::chrono::duration<double, std::milli> more(SplitMilliseconds(how, config));
  const cudaError_t error = StreamWork(handle.stream, [work, workspace, workspace_bytes, more] {
    if (workspace_bytes > 0) std::memset(workspace, 0xA5, workspace_bytes);
    work();
    if (more.count() > 0) std::this_thread::sleep_for(more);
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS
                              : Refuse(CUDNN_STATUS_EXECUTION_FAILED, cudaGetErrorName(error));
}

}  // namespace halftone::emulation::cudnn
