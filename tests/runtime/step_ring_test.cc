// Outputs that arrive late: order, waiting, buffers that go away, errors.
#include "halftone/graph/runtime/step_ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "halftone/core/tensor.h"
#include "halftone/tests/runtime/fake_device.h"

namespace halftone::runtime {
namespace {

using testing::FakeDevice;

// Steps that give one f32, after a state word that says whether they failed.
struct Ring {
  FakeDevice device;
  std::shared_ptr<StepRing> ring;

  explicit Ring(bool together = false) {
    const auto check = [](const char* slot) {
      return *reinterpret_cast<const float*>(slot) == 0 ? absl::OkStatus()
                                                        : OutOfRange("the step failed");
    };
    auto made = StepRing::Create(device, 128, {{64, sizeof(float)}}, check, together);
    HT_CHECK(made.ok(), "the fake has memory");
    ring = *made;
  }
  // A step whose output becomes `value` when the device gets to it.
  absl::Status Step(float value, Tensor& out, bool fails = false) {
    HT_RETURN_IF_ERROR(Part(value, out, 0, fails));
    Buffer* const buffer = out.buffer().get();
    const std::shared_ptr<PendingWrite> pending = ring->Watch({&buffer, 1});
    out.buffer()->SetPending(pending);
    return absl::OkStatus();
  }
  // The same for element `at`, which nobody waits for.
  absl::Status Part(float value, Tensor& out, size_t at, bool fails = false) {
    HT_ASSIGN_OR_RETURN(char* const slot, ring->Begin());
    device.Enqueue([slot, value, fails] {
      *reinterpret_cast<float*>(slot) = fails ? 1 : 0;
      *reinterpret_cast<float*>(slot + 64) = value;
    });
    void* const to = static_cast<float*>(out.address()) + at;
    return ring->Commit(&to);
  }
};

TEST(StepRing, ReadingAnOutputWaitsForItsStepAlone) {
  Ring r;
  Tensor a = Tensor::Scalar(DType::kF32, 0), b = Tensor::Scalar(DType::kF32, 0);
  ASSERT_TRUE(r.Step(1, a).ok());
  ASSERT_TRUE(r.Step(2, b).ok());
  EXPECT_EQ(r.device.waiting(), 2u);
  EXPECT_EQ(a.item(), 1);
  EXPECT_EQ(r.device.waiting(), 1u);
  EXPECT_EQ(b.item(), 2);
  EXPECT_EQ(r.device.waiting(), 0u);
}

// One process reads the outputs of failed steps at once, the other never: the same calls begin no step.
TEST(StepRing, TogetherTheSameCallsTellOfAnErrorWhoeverReads) {
  std::string outcomes[2];
  for (const bool reads : {false, true}) {
    Ring r(/*together=*/true);
    Tensor out = Tensor::Scalar(DType::kF32, 0);
    for (int call = 0; call < 12; ++call) {
      const absl::Status status = r.Step(1, out, /*fails=*/call == 1 || call == 2 || call == 7);
      outcomes[reads] += status.ok() ? 's' : 'e';
      if (reads) out.item();
    }
    outcomes[reads] += r.ring->Finish().ok() ? 's' : 'e';
  }
  // Calls 2, 3 and 8 begin steps 2, 3 and 6, which fail; steps 5, 6 and 9 would take their slots.
  EXPECT_EQ(outcomes[0], "ssssesesssess");
  EXPECT_EQ(outcomes[1], "ssssesesssess");
}

TEST(StepRing, TogetherFinishTellsOfTheFirstErrorAndForgetsAll) {
  Ring r(/*together=*/true);
  Tensor out = Tensor::Scalar(DType::kF32, 0);
  ASSERT_TRUE(r.Step(1, out, /*fails=*/true).ok());
  ASSERT_TRUE(r.Step(1, out, /*fails=*/true).ok());
  EXPECT_FALSE(r.ring->Finish().ok());
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(r.Step(1, out).ok());
  EXPECT_TRUE(r.ring->Finish().ok());
}

TEST(StepRing, TheHostRunsAheadByItsSlots) {
  Ring r;
  std::vector<Tensor> out;
  for (size_t i = 0; i < StepRing::kSlots + 1; ++i) out.push_back(Tensor::Scalar(DType::kF32, -1));
  for (size_t i = 0; i < StepRing::kSlots; ++i) {
    ASSERT_TRUE(r.Step(static_cast<float>(i), out[i]).ok());
  }
  EXPECT_EQ(r.device.waiting(), StepRing::kSlots);
  ASSERT_TRUE(r.Step(9, out.back()).ok());  // needs the slot of the first
  EXPECT_EQ(r.device.waiting(), StepRing::kSlots);
  EXPECT_EQ(*static_cast<const float*>(out[0].address()), 0);
  EXPECT_EQ(*static_cast<const float*>(out[1].address()), -1);
  EXPECT_EQ(out.back().item(), 9);
  EXPECT_EQ(out[1].item(), 1);
}

TEST(StepRing, ABufferUsedAgainKeepsTheNewerValue) {
  Ring r;
  Tensor out = Tensor::Scalar(DType::kF32, 0);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(r.Step(static_cast<float>(i), out).ok());
  EXPECT_EQ(out.item(), 7);
  ASSERT_TRUE(r.ring->Finish().ok());
  EXPECT_EQ(out.item(), 7);
}

TEST(StepRing, ABufferThatIsGoneIsNotWritten) {
  Ring r;
  {
    Tensor out = Tensor::Scalar(DType::kF32, 0);
    ASSERT_TRUE(r.Step(1, out).ok());
  }
  EXPECT_EQ(r.device.waiting(), 1u);  // and nobody waited for it
  EXPECT_TRUE(r.ring->Finish().ok());
}

// As the micro-batches of a call do: the last one is waited for.
TEST(StepRing, SeveralStepsFillABuffer) {
  Ring r;
  Tensor out = Tensor::Zeros(DType::kF32, {3});
  ASSERT_TRUE(r.Part(1, out, 1).ok());
  ASSERT_TRUE(r.Part(2, out, 2).ok());
  ASSERT_TRUE(r.Step(3, out).ok());
  EXPECT_EQ(r.device.waiting(), 3u);
  EXPECT_EQ(out.ToVector(), (std::vector<double>{3, 1, 2}));
  {
    Tensor gone = Tensor::Zeros(DType::kF32, {3});
    ASSERT_TRUE(r.Part(4, gone, 1).ok());
    ASSERT_TRUE(r.Step(5, gone).ok());
  }
  EXPECT_EQ(r.device.waiting(), 2u);
  EXPECT_TRUE(r.ring->Finish().ok());  // writes nowhere
}

TEST(StepRing, OutputsOutliveTheRing) {
  Tensor out = Tensor::Scalar(DType::kF32, 0);
  FakeDevice device;
  {
    Ring r;
    ASSERT_TRUE(r.Step(5, out).ok());
    r.ring->Close();
  }
  EXPECT_EQ(out.item(), 5);
}

TEST(StepRing, AClosedRingKeepsNothingOfTheDeviceForOutputsThatOutliveIt) {
  Tensor out = Tensor::Scalar(DType::kF32, 0);
  FakeDevice device;
  auto ring = *StepRing::Create(device, 128, {{64, sizeof(float)}}, nullptr);
  char* const slot = *ring->Begin();
  device.Enqueue([slot] { *reinterpret_cast<float*>(slot + 64) = 5; });
  void* const to = out.address();
  ASSERT_TRUE(ring->Commit(&to).ok());
  Buffer* const buffer = out.buffer().get();
  out.buffer()->SetPending(ring->Watch({&buffer, 1}));
  EXPECT_GT(device.live_pinned, 0u);
  ring->Close();
  ring = nullptr;
  EXPECT_EQ(device.live_pinned, 0u);
  EXPECT_EQ(device.live_events, 0);
  EXPECT_EQ(out.item(), 5);
}

// A reader that sleeps until the device is done with a step, and what the trainer does meanwhile.
TEST(StepRing, AReaderThatWaitsHoldsNobodyUp) {
  Ring r;
  Tensor out = Tensor::Scalar(DType::kF32, 0), next = Tensor::Scalar(DType::kF32, 0);
  ASSERT_TRUE(r.Step(1, out).ok());
  std::promise<void> waits, may_go_on;
  bool was_held_up = false;
  r.device.before_wait = [&] {
    waits.set_value();
    was_held_up =
        may_go_on.get_future().wait_for(std::chrono::seconds(10)) != std::future_status::ready;
  };
  double read = 0;
  std::thread reader([&] { read = out.item(); });
  waits.get_future().wait();
  EXPECT_TRUE(r.Step(2, next).ok());  // Begin, Commit, Watch
  {
    Tensor gone = Tensor::Scalar(DType::kF32, 0);
    EXPECT_TRUE(r.Step(3, gone).ok());
  }  // Forget
  may_go_on.set_value();
  reader.join();
  EXPECT_FALSE(was_held_up);
  EXPECT_EQ(read, 1);
  EXPECT_EQ(next.item(), 2);
}

TEST(StepRing, AReaderThatIsOvertakenDeliversNothingTwice) {
  Ring r;
  Tensor out = Tensor::Scalar(DType::kF32, 0);
  std::vector<Tensor> later;
  ASSERT_TRUE(r.Step(1, out).ok());
  std::promise<void> waits, may_go_on;
  r.device.before_wait = [&] {
    waits.set_value();
    may_go_on.get_future().wait_for(std::chrono::seconds(10));
  };
  double read = 0;
  std::thread reader([&] { read = out.item(); });
  waits.get_future().wait();
  // The slot of the first step, and its event, come to be the fourth's.
  for (int i = 2; i <= 4; ++i) {
    later.push_back(Tensor::Scalar(DType::kF32, 0));
    EXPECT_TRUE(r.Step(static_cast<float>(i), later.back()).ok());
  }
  may_go_on.set_value();
  reader.join();
  EXPECT_EQ(read, 1);
  EXPECT_TRUE(r.ring->Finish().ok());
  for (int i = 2; i <= 4; ++i) EXPECT_EQ(later[static_cast<size_t>(i - 2)].item(), i);
}

TEST(StepRing, AFailedStepIsToldOnceAndTheNextOneNotBegun) {
  Ring r;
  Tensor out = Tensor::Scalar(DType::kF32, 0), later = Tensor::Scalar(DType::kF32, 0);
  ASSERT_TRUE(r.Step(1, out, /*fails=*/true).ok());
  EXPECT_EQ(out.item(), 0);  // undefined by contract; here: left alone
  const absl::Status told = r.Step(2, later);
  EXPECT_EQ(told.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(r.device.waiting(), 0u);
  ASSERT_TRUE(r.Step(3, later).ok());
  EXPECT_EQ(later.item(), 3);
  EXPECT_TRUE(r.ring->Finish().ok());
}

TEST(StepRing, FinishGivesTheFirstOfTwoErrors) {
  Ring r;
  Tensor a = Tensor::Scalar(DType::kF32, 0), b = Tensor::Scalar(DType::kF32, 0);
  ASSERT_TRUE(r.Step(1, a).ok());
  ASSERT_TRUE(r.Step(1, b, /*fails=*/true).ok());
  r.device.failure = Internal("the device is gone");
  EXPECT_EQ(r.ring->Finish().code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(r.ring->Finish().ok());
}

}  // namespace
}  // namespace halftone::runtime
