// status.h, check.h and device.h.
#include "halftone/core/status.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/cord.h"
#include "halftone/core/check.h"
#include "halftone/core/device.h"

namespace halftone {
namespace {

absl::StatusOr<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("half: ", x, " is odd");
  return x / 2;
}

absl::StatusOr<int> Quarter(int x) {
  HT_ASSIGN_OR_RETURN(const int half, Half(x));
  HT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status Divisible(int x) {
  HT_RETURN_IF_ERROR(Half(x).status());
  return absl::OkStatus();
}

TEST(StatusTest, MacrosPassErrorsOn) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Message(Quarter(6).status()), "half: 3 is odd");
  EXPECT_TRUE(Divisible(2).ok());
  EXPECT_EQ(Divisible(1).code(), absl::StatusCode::kInvalidArgument);
}

absl::StatusOr<std::unique_ptr<int>> MoveOnly() {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<int> value,
                      absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(4)));
  return value;
}

TEST(StatusTest, AssignMovesTheValue) { EXPECT_EQ(**MoveOnly(), 4); }

TEST(StatusTest, CodesOfTheHelpers) {
  EXPECT_EQ(InvalidArgument("x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FailedPrecondition("x").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(NotFound("x").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Unimplemented("x").code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(OutOfRange("x").code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ResourceExhausted("x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DataLoss("x").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Internal("x").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Message(OutOfRange("axis ", 5, " of ", std::string("x"), ' ', 0.5)), "axis 5 of x 0.5");
}

TEST(StatusTest, AnnotateKeepsCodeAndPayload) {
  absl::Status status = NotFound("no variable \"w\"");
  status.SetPayload("where", absl::Cord("there"));
  const absl::Status annotated = Annotate(status, "model.cc:42: ");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(annotated), "model.cc:42: no variable \"w\"");
  EXPECT_EQ(annotated.GetPayload("where"), absl::Cord("there"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "model.cc:42: ").ok());
}

TEST(CheckDeathTest, NamesPlaceConditionAndMessage) {
  const int x = 3;
  HT_CHECK(x == 3);
  EXPECT_DEATH(HT_CHECK(x == 4, "x must be four"),
               "status_test\\.cc:[0-9]+: check failed: x == 4: x must be four");
  EXPECT_DEATH(HT_CHECK(x == 4), "check failed: x == 4\n");
}

TEST(DeviceTest, NamesAndEquality) {
  EXPECT_EQ(Device::Cpu().ToString(), "cpu");
  EXPECT_EQ(Device::Reference().ToString(), "reference");
  EXPECT_EQ(Device::Cuda(1).ToString(), "cuda:1");
  EXPECT_EQ(Device{}, Device::Cpu());
  EXPECT_FALSE(Device::Cuda(0) == Device::Cuda(1));
}

}  // namespace
}  // namespace halftone
