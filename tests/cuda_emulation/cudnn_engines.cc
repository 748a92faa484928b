// The emulated cuDNN's engines. Some keep every promise; the others are there to be refused by what
// their notes say, and give wrong results (cudnn_execute.cc) to whoever runs them all the same.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "halftone/tests/cuda_emulation/cudnn_descriptor.h"

namespace halftone::emulation::cudnn {
namespace {

bool SameStrides(const Operand& a, bool channels_last) {
  // Axes from the outermost to the innermost.
  std::vector<size_t> order(a.dims.size());
  std::iota(order.begin(), order.end(), 0);
  if (channels_last) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  int64_t want = 1;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    if (a.dims[*axis] != 1 && a.strides[*axis] != want) return false;
    want *= a.dims[*axis];
  }
  return true;
}

// Of the real library: operands of one layout, nothing empty, products of one type of operands
// whose result is of it too.
bool Supports(const Convolution& conv, int64_t index) {
  bool plain = true, channels_last = true;
  for (const Operand* o : {&conv.x, &conv.w, &conv.y}) {
    if (o->elements() == 0) return false;
    plain = plain && SameStrides(*o, false);
    channels_last = channels_last && SameStrides(*o, true);
  }
  if (!plain && !channels_last) return false;
  // Windows of more rows than any engine takes but the one that fails.
  if (conv.w.dims[2] > 16 && index != kEngineThatFails) return false;
  const bool low = conv.x.dtype != CUDNN_DATA_FLOAT;
  if (conv.product == Product::kGradWeight && low && conv.w.dtype == CUDNN_DATA_FLOAT) {
    // One engine that no heuristic names, for whole vectors of channels.
    return conv.x.dtype == conv.y.dtype && index == 1 && conv.w.dims[0] % 8 == 0 &&
           conv.w.dims[1] % 8 == 0;
  }
  if (conv.x.dtype != conv.w.dtype || conv.x.dtype != conv.y.dtype) return false;
  if (conv.has_bias && conv.bias.dtype != conv.x.dtype) {
    const bool depthwise = conv.w.dims[1] == 1 && conv.x.dims[1] > 1;
    if (!channels_last || (depthwise && conv.x.dtype == CUDNN_DATA_BFLOAT16)) return false;
  }
  return true;
}

DescriptorPtr Configuration(const DescriptorPtr& graph, int64_t index, int64_t tile) {
  const auto engine = std::make_shared<Descriptor>();
  engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
  engine->PutDescriptors(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {graph});
  engine->Put(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector<int64_t>{index});
  if (Finalize(*engine) != CUDNN_STATUS_SUCCESS) return nullptr;
  engine->finalized = true;
  const auto config = std::make_shared<Descriptor>();
  config->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
  config->PutDescriptors(CUDNN_ATTR_ENGINECFG_ENGINE, {engine});
  if (tile >= 0) {
    const auto knob = std::make_shared<Descriptor>();
    knob->type = CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
    knob->Put(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
              std::vector<cudnnBackendKnobType_t>{CUDNN_KNOB_TYPE_TILE_SIZE});
    knob->Put(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::vector<int64_t>{tile});
    knob->finalized = true;
    config->PutDescriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, {knob});
  }
  config->finalized = true;
  return config;
}

// CUDNN_KNOB_TYPE_TILE_SIZE of `kernels` values, and of two more that no kernel has.
Knob TileKnob(int64_t kernels) {
  return {CUDNN_KNOB_TYPE_TILE_SIZE, 0, kernels + 1, kernels, 1000};
}

// Parts of each sum, which go through the workspace.
constexpr Knob kSplitKnob = {CUDNN_KNOB_TYPE_SPLIT_K_SLC, 1, 128, 129, 100};

// One that does as it should, after one whose sums have no fixed order and one that fails.
Engine AttentionEngine(int64_t index, const Descriptor& graph) {
  Engine engine;
  engine.supported = SupportsAttention(graph);
  engine.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  switch (index) {
    case 1:
      engine.workspace_bytes = 5000;
      engine.knobs = {TileKnob(2)};
      break;
    case 2:
      engine.notes.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
      break;
    case kEngineThatFails:
      break;
    default:
      engine.supported = false;
  }
  return engine;
}

}  // namespace

const Knob* Engine::Find(cudnnBackendKnobType_t type) const {
  for (const Knob& knob : knobs) {
    if (knob.type == type) return &knob;
  }
  return nullptr;
}

double SplitMilliseconds(const Engine& engine, const Descriptor& config) {
  if (engine.Find(CUDNN_KNOB_TYPE_SPLIT_K_SLC) == nullptr) return 0;
  int64_t parts = 1;
  for (const DescriptorPtr& choice : config.References(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
    if (choice->Value(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_COUNTS) ==
        CUDNN_KNOB_TYPE_SPLIT_K_SLC) {
      parts = choice->Value<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1);
    }
  }
  return std::abs(std::log2(static_cast<double>(parts) / kFastestSplit));
}

Engine EngineFor(int64_t index, const Descriptor& graph) {
  if (IsAttention(graph)) return AttentionEngine(index, graph);
  Convolution conv;
  ReadGraph(graph, conv);
  Engine engine;
  const bool low = conv.x.dtype != CUDNN_DATA_FLOAT;
  engine.supported = Supports(conv, index);
  switch (index) {
    case 0:
      break;
    case 1:  // with knobs, on which its workspace depends
      if (low) engine.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
      engine.workspace_bytes = 5000;
      engine.knobs = {TileKnob(6)};
      if (conv.w.dtype != conv.x.dtype) engine.knobs.push_back(kSplitKnob);
      break;
    case 2:
      engine.notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
      break;
    case 3:  // TF32
      engine.supported = engine.supported && !low;
      engine.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
      break;
    case 4:
      engine.workspace_bytes = int64_t{1} << 30;
      break;
    case 5:
      engine.supported = engine.supported && low;
      engine.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                      CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
      break;
    case 6:  // f32 operands as 16 bit
      engine.supported = engine.supported && !low;
      engine.notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
      break;
    case kEngineThatFails:
      break;
    default:
      engine.supported = false;
  }
  return engine;
}

std::vector<DescriptorPtr> Recommend(const DescriptorPtr& graph, cudnnBackendHeurMode_t mode) {
  std::vector<int64_t> order = {2, 5, 4, 6, 3, 1, kEngineThatFails};
  if (mode == CUDNN_HEUR_MODE_FALLBACK) order = {2, 0};
  bool unnamed = false;
  if (!IsAttention(*graph)) {
    Convolution conv;
    ReadGraph(*graph, conv);
    unnamed = conv.w.dtype != conv.x.dtype;
  }
  std::vector<DescriptorPtr> configs;
  for (const int64_t index : order) {
    const Engine engine = EngineFor(index, *graph);
    if (!engine.supported || unnamed) continue;
    const Knob* const tiles = engine.Find(CUDNN_KNOB_TYPE_TILE_SIZE);
    if (tiles == nullptr) {
      configs.push_back(Configuration(graph, index, -1));
      continue;
    }
    for (int64_t tile = tiles->first_refused - 1; tile >= 0; --tile) {
      configs.push_back(Configuration(graph, index, tile));
    }
  }
  return configs;
}

}  // namespace halftone::emulation::cudnn
