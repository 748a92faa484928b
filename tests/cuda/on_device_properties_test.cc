// cuDNN's description of the device: what its heuristics go by. With it, plans for a device can be
// looked at on a machine that has none; HALFTONE_DEVICE_PROPERTIES names the file to write it to.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace halftone::testing {
namespace {

struct Destroy {
  void operator()(cudnnBackendDescriptor_t d) const { (void)cudnnBackendDestroyDescriptor(d); }
};
using Descriptor = std::unique_ptr<void, Destroy>;

Descriptor NewProperties() {
  cudnnBackendDescriptor_t d = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d),
            CUDNN_STATUS_SUCCESS);
  return Descriptor(d);
}

std::string Json(cudnnBackendDescriptor_t d) {
  int64_t size = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                     0, &size, nullptr),
            CUDNN_STATUS_SUCCESS);
  std::vector<char> text(size + 1, '\0');
  EXPECT_EQ(cudnnBackendGetAttribute(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                     size, &size, text.data()),
            CUDNN_STATUS_SUCCESS);
  return text.data();
}

// One soname serves CUDA 12 and 13, so the loader may find the other.
TEST(CudnnDeviceProperties, TheLibraryIsOfTheRuntimesCuda) {
  int runtime = 0;
  ASSERT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  std::printf("cuDNN %zu for CUDA %zu, runtime %d\n", cudnnGetVersion(), cudnnGetCudartVersion(),
              runtime);
  EXPECT_EQ(cudnnGetCudartVersion() / 1000, static_cast<size_t>(runtime / 1000));
}

TEST(CudnnDeviceProperties, GoToJsonAndBack) {
  const Descriptor of_device = NewProperties();
  int32_t device = 0;
  ASSERT_EQ(cudnnBackendSetAttribute(of_device.get(), CUDNN_ATTR_DEVICEPROP_DEVICE_ID,
                                     CUDNN_TYPE_INT32, 1, &device),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnBackendFinalize(of_device.get()), CUDNN_STATUS_SUCCESS);
  const std::string json = Json(of_device.get());
  ASSERT_FALSE(json.empty());
  if (const char* file = std::getenv("HALFTONE_DEVICE_PROPERTIES")) {
    std::ofstream out(file);
    out << json << "\n";
    EXPECT_TRUE(out.good()) << file;
  }

  const Descriptor of_json = NewProperties();
  ASSERT_EQ(
      cudnnBackendSetAttribute(of_json.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                               CUDNN_TYPE_CHAR, static_cast<int64_t>(json.size()), json.data()),
      CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudnnBackendFinalize(of_json.get()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(Json(of_json.get()), json);
}

}  // namespace
}  // namespace halftone::testing
