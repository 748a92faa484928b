// Trainings that must agree in every bit.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {

// What three steps leave.
struct StepsTaken {
  std::vector<Tensor> outputs;
  StateDict state;
  size_t arena_bytes = 0;
};

// Three calls of `graph`, on batch(step).
template <typename Batch>
StepsTaken TrainSteps(Graph& graph, const Batch& batch) {
  StepsTaken trained;
  for (int step = 0; step < 3; ++step) {
    for (Tensor& out : Call(graph, batch(step))) trained.outputs.push_back(std::move(out));
  }
  auto state = graph.state_dict();
  EXPECT_TRUE(state.ok()) << state.status();
  if (state.ok()) trained.state = *state;
  trained.arena_bytes = graph.arena_bytes();
  return trained;
}

inline void ExpectSameBits(const StateDict& got, const StateDict& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, value] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    EXPECT_TRUE(BitEqual(got.at(name), value)) << name;
  }
}

inline void ExpectSameBits(const StepsTaken& got, const StepsTaken& want) {
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    EXPECT_TRUE(BitEqual(got.outputs[i], want.outputs[i])) << "output " << i;
  }
  ExpectSameBits(got.state, want.state);
}

}  // namespace halftone::nn
