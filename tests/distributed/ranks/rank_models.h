// Models that ranks train together, and the same trained by one rank alone on all of the data.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "halftone/distributed/communicator.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {

using distributed::Rank;
using distributed::Size;

// Where the models of these tests run: on the CPU, or, if HALFTONE_RANK_DEVICE is "cuda", on a device for each
// rank.
inline Device OwnDevice() {
  const char* const kind = std::getenv("HALFTONE_RANK_DEVICE");
  const bool is_cuda = kind != nullptr && std::string(kind) == "cuda";
  return distributed::DeviceOfRank(is_cuda ? Device::Kind::kCuda : Device::Kind::kCpu);
}
inline bool IsOnCuda() { return OwnDevice().kind == Device::Kind::kCuda; }

class RankGraph : public FnGraph {
 public:
  explicit RankGraph(Fn fn = {}) : FnGraph(std::move(fn)) { to(OwnDevice()); }
};

// The error of a call or of its step, which a device may make later.
inline absl::Status StepStatus(Graph& graph, const std::vector<Tensor>& in) {
  HT_RETURN_IF_ERROR(CallStatus(graph, in));
  return graph.synchronize();
}

// Rows of all ranks' batches, one after the other.
struct Batch {
  Tensor x, y;
};

inline Tensor Rows(const Tensor& whole, int64_t first, int64_t count) {
  std::vector<int64_t> dims(whole.shape().dims().begin(), whole.shape().dims().end());
  const int64_t row = whole.num_elements() / dims[0];
  dims[0] = count;
  Tensor rows = Tensor::Empty(whole.dtype(), Shape(dims));
  for (int64_t i = 0; i < rows.num_elements(); ++i) rows.set(i, whole.at(first * row + i));
  return rows;
}

// This rank's part.
inline std::vector<Tensor> OwnPart(const Batch& batch) {
  const int64_t count = batch.x.shape()[0] / Size();
  return {Rows(batch.x, Rank() * count, count), Rows(batch.y, Rank() * count, count)};
}

// Of 10 classes that can be learned: which of the first ten numbers of a row is the largest.
inline Batch BatchOf(const Shape& shape, int step) {
  const Tensor x = testing::RandomTensor(DType::kF32, shape, static_cast<uint64_t>(step) + 1);
  Tensor y = Tensor::Empty(DType::kI64, {shape[0]});
  const int64_t row = x.num_elements() / shape[0];
  for (int64_t n = 0; n < shape[0]; ++n) {
    int64_t best = 0;
    for (int64_t i = 1; i < 10; ++i) best = x.at(n * row + i) > x.at(n * row + best) ? i : best;
    y.set(n, static_cast<double>(best));
  }
  return {x, y};
}

// A classifier of 10 classes with its optimizer; together: with the others of the job.
class RankModel {
 public:
  RankModel(Sequential net, bool together, DataParallel options = {.bucket_bytes = 4096})
      : net_(std::move(net)) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = cross_entropy(net_(in[0]), in[1]);
      loss.backward();
      return {loss};
    };
    graph.add_module("net", net_);
    graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.02, .momentum = 0.9}));
    if (together) graph.config.data_parallel(options);
  }
  StateDict State() { return *graph.state_dict(); }

  RankGraph graph;

 private:
  Sequential net_;
};

inline Sequential Mlp() {
  return Sequential(Linear(12, 48), ReLU(), Linear(48, 24), ReLU(), Linear(24, 10));
}

// fashion_cnn, a quarter as wide, of images of 8 x 8.
inline Sequential Cnn() {
  return Sequential(Conv2d(1, 8, 3, {.padding = 1}), ReLU(), Conv2d(8, 16, 3, {.padding = 1}),
                    ReLU(), MaxPool2d(2), Flatten(), Linear(16 * 4 * 4, 32), ReLU(),
                    Linear(32, 10));
}

// The largest distance of a parameter, whose name begins with `prefix`, from that of `want`, by the norm of each.
inline double RelativeDistance(const StateDict& got, const StateDict& want,
                               const std::string& prefix = "net.") {
  double worst = 0;
  for (const auto& [name, expected] : want) {
    if (name.find(prefix) != 0 || !IsFloat(expected.dtype())) continue;
    double distance = 0, norm = 0;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      const double d = got.at(name).at(i) - expected.at(i);
      distance += d * d;
      norm += expected.at(i) * expected.at(i);
    }
    worst = std::max(worst, std::sqrt(distance / norm));
  }
  return worst;
}

// Whether all ranks have the same bits, of every variable.
inline void ExpectSameOnAllRanks(const StateDict& state) {
  for (const auto& [name, value] : state) {
    const std::string bytes(static_cast<const char*>(value.raw()), value.num_bytes());
    const auto all = distributed::World().Exchange(bytes, "test");
    ASSERT_TRUE(all.ok()) << all.status();
    for (int r = 0; r < Size(); ++r) {
      EXPECT_TRUE((*all)[static_cast<size_t>(r)] == bytes) << name << " of rank " << r;
    }
  }
}

}  // namespace halftone::nn
