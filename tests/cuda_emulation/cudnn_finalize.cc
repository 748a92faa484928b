// What the emulated cuDNN checks when a descriptor is finalized.
#include <algorithm>
#include <set>

#include "halftone/tests/cuda_emulation/cudnn_descriptor.h"

namespace halftone::emulation::cudnn {
namespace {

constexpr cudnnStatus_t kBad = CUDNN_STATUS_BAD_PARAM;

cudnnStatus_t FinalizeTensor(const Descriptor& d) {
  const auto dims = d.Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = d.Ints(CUDNN_ATTR_TENSOR_STRIDES);
  if (dims.empty() || dims.size() != strides.size()) {
    return Refuse(kBad, "tensor: " + std::to_string(dims.size()) + " dimensions, " +
                            std::to_string(strides.size()) + " strides");
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || strides[i] < 0) return Refuse(kBad, "tensor: negative extent or stride");
  }
  const size_t bytes = SizeOf(d.Value(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_INT8));
  if (bytes == 0) return Refuse(kBad, "tensor: no data type, or one that is not emulated");
  const int64_t alignment = d.Value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0);
  if (alignment <= 0 || alignment % static_cast<int64_t>(bytes) != 0) {
    return Refuse(kBad, "tensor: alignment of " + std::to_string(alignment) + " bytes");
  }
  if (!d.Has(CUDNN_ATTR_TENSOR_UNIQUE_ID)) return Refuse(kBad, "tensor: no unique id");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeConvolution(const Descriptor& d) {
  const int64_t axes = d.Value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
  if (axes < 1) return Refuse(kBad, "convolution: no spatial dimensions");
  const auto check = [&](cudnnBackendAttributeName_t name, int64_t least) {
    const auto values = d.Ints(name);
    return static_cast<int64_t>(values.size()) == axes &&
           std::all_of(values.begin(), values.end(), [least](int64_t v) { return v >= least; });
  };
  if (!check(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0) ||
      !check(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0) ||
      !check(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1) ||
      !check(CUDNN_ATTR_CONVOLUTION_DILATIONS, 1)) {
    return Refuse(kBad, "convolution: paddings, strides or dilations out of range or missing");
  }
  if (axes != 2 && axes != 3) {
    return Refuse(kBad, "convolution: only 2 or 3 spatial dimensions are emulated");
  }
  if (d.Value(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_HALF) != CUDNN_DATA_FLOAT) {
    return Refuse(kBad, "convolution: only f32 sums are emulated");
  }
  if (d.Value(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION) != CUDNN_CROSS_CORRELATION) {
    return Refuse(kBad, "convolution: only cross-correlation is emulated");
  }
  return CUDNN_STATUS_SUCCESS;
}

bool IsTensor(const Descriptor* d) {
  return d != nullptr && d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR;
}

// Whether two elements of the tensor lie in one place.
bool Overlaps(const Descriptor& tensor) {
  const auto dims = tensor.Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.Ints(CUDNN_ATTR_TENSOR_STRIDES);
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1) axes.emplace_back(strides[i], dims[i]);
  }
  std::sort(axes.begin(), axes.end());
  int64_t covered = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride < covered) return true;
    covered = stride * extent;
  }
  return false;
}

cudnnStatus_t FinalizeConvOperation(const Descriptor& d, Product product) {
  const Names names = NamesOf(product);
  const Descriptor* const conv = d.Reference(names.conv);
  if (conv == nullptr || conv->type != CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) {
    return Refuse(kBad, "convolution operation: no convolution descriptor");
  }
  const size_t axes = conv->Ints(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).size();
  for (const cudnnBackendAttributeName_t name : {names.x, names.w, names.y}) {
    if (!IsTensor(d.Reference(name)))
      return Refuse(kBad, "convolution operation: a tensor is missing");
    if (d.Reference(name)->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS).size() != 2 + axes) {
      return Refuse(
          kBad, "convolution operation: a tensor that is not of rank " + std::to_string(2 + axes));
    }
  }
  for (const cudnnBackendAttributeName_t name : {names.x, names.w, names.y}) {
    if (Overlaps(*d.Reference(name))) {
      return Refuse(kBad, "convolution operation: a tensor whose elements overlap");
    }
  }
  if (!d.Has(names.alpha) || !d.Has(names.beta)) {
    return Refuse(kBad, "convolution operation: alpha or beta is missing");
  }
  const auto x = d.Reference(names.x)->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto w = d.Reference(names.w)->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto y = d.Reference(names.y)->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  if (w[1] == 0 || x[1] == 0 || x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0) {
    return Refuse(kBad, "convolution operation: channels do not divide into groups");
  }
  if (y[1] != w[0] || y[0] != x[0]) return Refuse(kBad, "convolution operation: y does not fit");
  const auto before = conv->Ints(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto after = conv->Ints(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const auto stride = conv->Ints(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilation = conv->Ints(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t room = x[2 + i] + before[i] + after[i] - (w[2 + i] - 1) * dilation[i] - 1;
    if (room < 0 || room / stride[i] + 1 != y[2 + i]) {
      return Refuse(kBad, "convolution operation: spatial extents do not fit");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizePointwiseOperation(const Descriptor& d) {
  const Descriptor* const pw = d.Reference(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (pw == nullptr || pw->type != CUDNN_BACKEND_POINTWISE_DESCRIPTOR) {
    return Refuse(kBad, "pointwise operation: no pointwise descriptor");
  }
  if (pw->Value(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD) != CUDNN_POINTWISE_ADD) {
    return FinalizeAttentionPart(d);
  }
  const Descriptor* const x = d.Reference(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const Descriptor* const b = d.Reference(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  const Descriptor* const y = d.Reference(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  if (!IsTensor(x) || !IsTensor(b) || !IsTensor(y)) {
    return Refuse(kBad, "pointwise operation: a tensor is missing");
  }
  const auto x_dims = x->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto b_dims = b->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS);
  if (x_dims != y->Ints(CUDNN_ATTR_TENSOR_DIMENSIONS)) {
    return Refuse(kBad, "pointwise operation: x and y of two shapes");
  }
  std::vector<int64_t> one_a_channel(x_dims.size(), 1);
  one_a_channel[1] = x_dims[1];
  if (b_dims != one_a_channel) {
    return Refuse(kBad, "pointwise operation: only b of one value a channel is emulated");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizePointwise(const Descriptor& d) {
  const auto mode = d.Value(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_MOD);
  const auto precision = d.Value(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_HALF);
  const auto wanted = mode == CUDNN_POINTWISE_GEN_INDEX ? CUDNN_DATA_INT32
                      : mode == CUDNN_POINTWISE_CMP_GE  ? CUDNN_DATA_BOOLEAN
                                                        : CUDNN_DATA_FLOAT;
  const bool has_axis = d.Has(CUDNN_ATTR_POINTWISE_AXIS);
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_GEN_INDEX:
    case CUDNN_POINTWISE_BINARY_SELECT:
      if (precision == wanted && has_axis == (mode == CUDNN_POINTWISE_GEN_INDEX)) {
        return CUDNN_STATUS_SUCCESS;
      }
      break;
    default:
      break;
  }
  return Refuse(kBad, "pointwise: mode " + std::to_string(mode) + " in this precision, with" +
                          (has_axis ? "" : "out") + " an axis, is not emulated");
}

cudnnStatus_t FinalizeGraph(Descriptor& d) {
  Convolution conv;
  const cudnnStatus_t status = IsAttention(d) ? CheckAttention(d) : ReadGraph(d, conv);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  d.Put(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64,
        std::vector<int64_t>{kEngineCount});
  return CUDNN_STATUS_SUCCESS;
}

DescriptorPtr GraphOf(const Descriptor& d, cudnnBackendAttributeName_t name) {
  const auto references = d.References(name);
  return references.empty() || references[0]->type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR
             ? nullptr
             : references[0];
}

cudnnStatus_t FinalizeHeuristic(Descriptor& d) {
  const DescriptorPtr graph = GraphOf(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (graph == nullptr) return Refuse(kBad, "heuristic: no operation graph");
  const auto mode = d.Value(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODES_COUNT);
  if (mode != CUDNN_HEUR_MODE_A && mode != CUDNN_HEUR_MODE_FALLBACK) {
    return Refuse(kBad, "heuristic: only modes A and fallback are emulated");
  }
  d.PutDescriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, Recommend(graph, mode));
  return CUDNN_STATUS_SUCCESS;
}

DescriptorPtr KnobInfo(const Knob& knob) {
  const auto info = std::make_shared<Descriptor>();
  info->type = CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR;
  info->Put(CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, std::vector{knob.type});
  info->Put(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, std::vector{knob.minimum});
  info->Put(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, std::vector{knob.maximum});
  info->Put(CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, std::vector{int64_t{1}});
  info->finalized = true;
  return info;
}

cudnnStatus_t FinalizeEngine(Descriptor& d) {
  const DescriptorPtr graph = GraphOf(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  if (graph == nullptr) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "engine: no operation graph");
  }
  const int64_t index = d.Value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1);
  const Engine engine = EngineFor(index, *graph);
  if (!engine.supported) {
    return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "engine " + std::to_string(index));
  }
  d.Put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, engine.notes);
  std::vector<DescriptorPtr> knobs;
  for (const Knob& knob : engine.knobs) knobs.push_back(KnobInfo(knob));
  d.PutDescriptors(CUDNN_ATTR_ENGINE_KNOB_INFO, std::move(knobs));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizeConfiguration(const Descriptor& d) {
  const Descriptor* const engine = d.Reference(CUDNN_ATTR_ENGINECFG_ENGINE);
  if (engine == nullptr || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) {
    return Refuse(kBad, "engine configuration: no engine");
  }
  const Engine of = EngineFor(engine->Value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1),
                              *engine->Reference(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  for (const DescriptorPtr& choice : d.References(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    const Knob* const knob =
        of.Find(choice->Value(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_COUNTS));
    if (knob == nullptr ||
        !knob->Takes(choice->Value<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, -1))) {
      return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "engine configuration: knob");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizePlan(Descriptor& d) {
  const Descriptor* const config = d.Reference(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (config == nullptr || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan: no engine configuration");
  }
  if (!d.Has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) && !d.Has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)) {
    return Refuse(kBad, "plan: neither handle nor device");
  }
  const Descriptor* const engine = config->Reference(CUDNN_ATTR_ENGINECFG_ENGINE);
  const Engine of = EngineFor(engine->Value<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, -1),
                              *engine->Reference(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
  int64_t bytes = of.workspace_bytes;
  for (const DescriptorPtr& choice : config->References(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    const Knob* const knob =
        of.Find(choice->Value(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_COUNTS));
    bytes += knob->workspace_bytes * choice->Value<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0);
  }
  d.Put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, std::vector<int64_t>{bytes});
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t FinalizePack(const Descriptor& d) {
  const auto uids = d.Ints(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (uids.size() != d.Values<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size()) {
    return Refuse(kBad, "variant pack: as many ids as pointers are needed");
  }
  if (std::set<int64_t>(uids.begin(), uids.end()).size() != uids.size()) {
    return Refuse(kBad, "variant pack: an id twice");
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

size_t SizeOf(cudnnDataType_t dtype) {
  switch (dtype) {
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
      return 4;
    case CUDNN_DATA_BOOLEAN:
      return 1;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    default:
      return 0;
  }
}

int64_t Operand::elements() const {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

int64_t Operand::bytes() const {
  if (elements() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return (last + 1) * static_cast<int64_t>(SizeOf(dtype));
}

cudnnStatus_t Finalize(Descriptor& d) {
  Product product;
  if (ProductOf(d.type, product)) return FinalizeConvOperation(d, product);
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return FinalizeTensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return FinalizeConvolution(d);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return FinalizePointwise(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return FinalizePointwiseOperation(d);
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return FinalizeAttentionPart(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return FinalizeGraph(d);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return FinalizeHeuristic(d);
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return FinalizeEngine(d);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
      return FinalizeConfiguration(d);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return FinalizePlan(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return FinalizePack(d);
    case CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      return CUDNN_STATUS_SUCCESS;
    default:
      return Refuse(kBad, "a descriptor that is not emulated");
  }
}

}  // namespace halftone::emulation::cudnn
