// Capture of streams, and graphs.
#include <algorithm>
#include <memory>
#include <vector>

#include "halftone/tests/cuda_emulation/ready_set.h"
#include "halftone/tests/cuda_emulation/runtime.h"

using halftone::emulation::AfterFailure;
using halftone::emulation::ApiCall;
using halftone::emulation::Call;
using halftone::emulation::Capture;
using halftone::emulation::GraphNode;
using halftone::emulation::Options;
using halftone::emulation::Runtime;
using halftone::emulation::Step;
using halftone::emulation::ThreadOrder;

struct CUgraph_st {
  std::vector<GraphNode> nodes;
};

struct CUgraphExec_st {
  // Shared with launches that have not run.
  std::shared_ptr<const std::vector<GraphNode>> nodes;
};

namespace {

// Whether everything that the capture's streams did comes before what the origin does next.
bool IsJoined(const Capture& capture) {
  std::vector<bool> joined(capture.nodes.size(), false);
  for (const size_t node : capture.origin->capture_tail) joined[node] = true;
  for (size_t i = capture.nodes.size(); i-- > 0;) {
    if (!joined[i]) continue;
    for (const size_t node : capture.nodes[i].after) joined[node] = true;
  }
  for (const CUstream_st* stream : capture.streams) {
    for (const size_t node : stream->capture_tail) {
      if (!joined[node]) return false;
    }
  }
  return true;
}

void End(Runtime& r, const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* stream : capture->streams) {
    stream->capture = nullptr;
    stream->capture_tail.clear();
  }
  r.captures.erase(std::find(r.captures.begin(), r.captures.end(), capture));
}

// One launch of a graph. Any order that the edges allow is as good; orders other than that of the capture
// show a missing edge.
class Replay {
 public:
  Replay(std::shared_ptr<const std::vector<GraphNode>> nodes, int device)
      : nodes_(std::move(nodes)),
        device_(device),
        random_(halftone::emulation::GetRuntime().options.seed),
        missing_(nodes_->size()),
        followers_(nodes_->size()) {
    for (size_t i = 0; i < nodes_->size(); ++i) {
      missing_[i] = (*nodes_)[i].after.size();
      for (const size_t node : (*nodes_)[i].after) followers_[node].push_back(i);
      if (missing_[i] == 0) MakeReady(i);
    }
  }

  // False: what is left waits for another process.
  bool Run() {
    const Runtime& r = halftone::emulation::GetRuntime();
    std::vector<Ready> waiting;
    while (!ready_.empty() && r.devices[device_].sticky == cudaSuccess) {
      Ready next = std::move(ready_[Pick(r.options)]);
      std::erase_if(ready_, [&](const Ready& one) { return one.node == next.node; });
      if (next.step && !next.step()) {
        waiting.push_back(std::move(next));
        continue;
      }
      for (const size_t follower : followers_[next.node]) {
        if (--missing_[follower] == 0) MakeReady(follower);
      }
    }
    ready_ = std::move(waiting);
    return ready_.empty() || r.devices[device_].sticky != cudaSuccess;
  }

 private:
  struct Ready {
    size_t node;
    Step step;
  };

  void MakeReady(size_t node) { ready_.push_back({node, (*nodes_)[node].begin()}); }

  size_t Pick(const Options& options) {
    if (options.order == ThreadOrder::kRandom) return random_.Below(ready_.size());
    const bool last = options.order == ThreadOrder::kReverse || options.lazy;
    const auto by_node = [](const Ready& a, const Ready& b) { return a.node < b.node; };
    const auto found = last ? std::max_element(ready_.begin(), ready_.end(), by_node)
                            : std::min_element(ready_.begin(), ready_.end(), by_node);
    return static_cast<size_t>(found - ready_.begin());
  }

  const std::shared_ptr<const std::vector<GraphNode>> nodes_;
  const int device_;
  halftone::emulation::Random random_;
  std::vector<size_t> missing_;
  std::vector<std::vector<size_t>> followers_;
  std::vector<Ready> ready_;
};

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    const std::shared_ptr<CUstream_st> stream = r.Find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream == r.current_device().legacy) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture != nullptr) return cudaErrorIllegalState;
    auto capture = std::make_shared<Capture>();
    capture->id = ++r.num_captures;
    capture->mode = mode;
    capture->origin = stream.get();
    capture->thread = std::this_thread::get_id();
    capture->streams = {stream.get()};
    stream->capture = capture;
    r.captures.push_back(std::move(capture));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    *graph = nullptr;
    const std::shared_ptr<CUstream_st> stream = r.Find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture == nullptr) return cudaErrorIllegalState;
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        capture->thread != std::this_thread::get_id()) {
      return cudaErrorStreamCaptureWrongThread;
    }
    if (stream.get() != capture->origin) {
      capture->invalidated = true;
      return cudaErrorStreamCaptureUnmatched;
    }
    const bool joined = IsJoined(*capture);
    End(r, capture);
    if (capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    if (!joined) {
      r.Report("a stream that joined the capture has work that its origin does not wait for");
      return cudaErrorStreamCaptureUnjoined;
    }
    *graph = new CUgraph_st{std::move(capture->nodes)};
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    if (graph != nullptr || dependencies != nullptr || edges != nullptr ||
        num_dependencies != nullptr) {
      r.Report("the graph of an unfinished capture is not emulated");
      return cudaErrorNotSupported;
    }
    const std::shared_ptr<CUstream_st> stream = r.Find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const Capture* capture = stream->capture.get();
    *status = capture == nullptr     ? cudaStreamCaptureStatusNone
              : capture->invalidated ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    if (id != nullptr && capture != nullptr) *id = capture->id;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(handle, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

// With nodes == nullptr: their count.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return ApiCall([&](Runtime&) -> cudaError_t {
    if (graph == nullptr) return cudaErrorInvalidValue;
    if (nodes != nullptr) {
      for (size_t i = 0; i < *count; ++i) {
        nodes[i] =
            i < graph->nodes.size() ? reinterpret_cast<cudaGraphNode_t>(&graph->nodes[i]) : nullptr;
      }
      *count = std::min(*count, graph->nodes.size());
    } else {
      *count = graph->nodes.size();
    }
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return ApiCall([&](Runtime&) -> cudaError_t {
    if (node == nullptr) return cudaErrorInvalidValue;
    *type = reinterpret_cast<const GraphNode*>(node)->type;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return ApiCall(
      [&](Runtime&) {
        delete graph;
        return cudaSuccess;
      },
      AfterFailure::kRelease);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    *executable = nullptr;
    if (graph == nullptr || flags != 0) return cudaErrorInvalidValue;
    if (r.IsToFail(Call::kInstantiateGraph)) return cudaErrorMemoryAllocation;
    *executable = new CUgraphExec_st{std::make_shared<std::vector<GraphNode>>(graph->nodes)};
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

// What a launch needs is in place already.
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    if (executable == nullptr) return cudaErrorInvalidValue;
    return r.Find(handle) == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return ApiCall(
      [&](Runtime&) {
        delete executable;
        return cudaSuccess;
      },
      AfterFailure::kRelease);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return ApiCall([&](Runtime& r) -> cudaError_t {
    if (executable == nullptr) return cudaErrorInvalidValue;
    const std::shared_ptr<CUstream_st> stream = r.Find(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) {
      r.Report("graphs within graphs are not emulated");
      return r.RefuseCapturing(*stream);
    }
    ++r.statistics.graph_launches;
    return r.SubmitSteps(stream, cudaGraphNodeTypeGraph,
                         [nodes = executable->nodes, device = stream->device]() -> Step {
                           const auto replay = std::make_shared<Replay>(nodes, device);
                           return [replay] { return replay->Run(); };
                         });
  });
}

}  // extern "C"
