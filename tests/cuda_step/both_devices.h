// The same graph on the CPU and on CUDA. In the emulated build CUDA is the device of
// tests/cuda_emulation; a real build of these tests runs where there is a GPU.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "halftone/halftone.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {

// What a run of several steps leaves: the first output of each, and the state.
struct Trajectory {
  std::vector<double> losses;
  nn::StateDict state;
};

// `steps` calls of `graph` on `device`, on batch(step). Fails the test on an error.
inline Trajectory Train(nn::Graph& graph, Device device, int steps,
                        const std::function<std::vector<Tensor>(int)>& batch) {
  graph.to(device);
  Trajectory trajectory;
  std::vector<Tensor> losses;
  for (int step = 0; step < steps; ++step) {
    const std::vector<Tensor> out = nn::Call(graph, batch(step));
    if (out.empty()) return trajectory;
    losses.push_back(out[0]);
  }
  const absl::Status status = graph.synchronize();
  EXPECT_TRUE(status.ok()) << status;
  for (const Tensor& loss : losses) trajectory.losses.push_back(loss.item());
  const absl::StatusOr<nn::StateDict> state = graph.state_dict();
  EXPECT_TRUE(state.ok()) << state.status();
  if (state.ok()) trajectory.state = *state;
  return trajectory;
}

// Whether the losses follow each other within `relative`.
inline ::testing::AssertionResult Follows(const std::vector<double>& got,
                                          const std::vector<double>& want, double relative) {
  if (got.size() != want.size() || want.empty()) {
    return ::testing::AssertionFailure() << got.size() << " steps, expected " << want.size();
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= relative * std::abs(want[i]))) {
      return ::testing::AssertionFailure()
             << "step " << i << ": loss " << got[i] << ", expected " << want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Whether two states have the same names and values within `relative` of each tensor's largest.
inline ::testing::AssertionResult SameState(const nn::StateDict& got, const nn::StateDict& want,
                                            double relative) {
  if (got.size() != want.size()) {
    return ::testing::AssertionFailure() << got.size() << " names, expected " << want.size();
  }
  for (const auto& [name, value] : want) {
    const auto found = got.find(name);
    if (found == got.end()) return ::testing::AssertionFailure() << "no \"" << name << "\"";
    double largest = 0;
    for (double x : value.ToVector()) largest = std::max(largest, std::abs(x));
    const auto close = IsClose(found->second, value, relative, relative * largest);
    if (!close) return ::testing::AssertionFailure() << name << ": " << close.message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace halftone::testing
