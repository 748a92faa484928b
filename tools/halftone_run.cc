// Runs a graph file (text or protobuf form) or an ONNX model: one step or several, on .npy files or generated
// values. Of a folder that a program's dump wrote (HALFTONE_DUMP) it takes graph, variables and
// inputs. Exit status: 0, 1 a file cannot be read or written or the step fails, 2 wrong options, or
// feeds and fetches that do not fit the graph, 3 --compare found a kernel, or a value in another precision,
// over the tolerance, or --nonfinite a value that is not finite.
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/cpu_count.h"
#include "halftone/core/io/file.h"
#include "halftone/core/io/npy.h"
#include "halftone/core/printable.h"
#include "halftone/core/threads.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/tools/support/compare.h"
#include "halftone/tools/support/feeds.h"
#include "halftone/tools/support/graph_source.h"
#include "halftone/tools/support/nonfinite.h"
#include "halftone/tools/support/precision.h"
#include "halftone/tools/support/profile.h"
#include "halftone/tools/support/step.h"
#include "halftone/tools/support/tensor_text.h"
#include "halftone/tools/support/variables.h"

ABSL_FLAG(std::vector<std::string>, feed, {},
          "list of INPUT=FILE.npy, or zeros, ones, arange, arange:N (modulo N), normal:SEED, "
          "with commas: x=x.npy,t=zeros")
    .OnUpdate([] { halftone::cli::NoteList("feed"); });
ABSL_FLAG(std::vector<std::string>, fetch, {},
          "values to show, with commas: outputs, nodes (h, h#1) or variables; empty: all outputs")
    .OnUpdate([] { halftone::cli::NoteList("fetch"); });
ABSL_FLAG(std::string, variables, "",
          "values that variables start from: a checkpoint, .npz or .safetensors");
ABSL_FLAG(uint64_t, seed, 0, "of variables that no checkpoint gives");
ABSL_FLAG(std::string, save, "", "checkpoint to write after the last step");
ABSL_FLAG(std::string, out, "", "folder for the values as NAME.npy; empty: print them");
ABSL_FLAG(int, steps, 1, "steps to run, all on the same feeds");
ABSL_FLAG(std::string, device, "cpu", "cpu, reference, cuda or cuda:N");
ABSL_FLAG(int, threads, 0, "CPU threads; 0: all");
ABSL_FLAG(std::string, profile, "", "file for a trace of all kernels (Chrome's format)");
ABSL_FLAG(std::vector<std::string>, compare, {},
          "reference: the last step also on reference kernels, and which values differ how much; "
          "f32,f16 or another two: the last step in these precisions")
    .OnUpdate([] { halftone::cli::NoteList("compare"); });
ABSL_FLAG(std::string, bisect, "",
          "f16 or bf16: the fewest nodes to keep f32 so that outputs agree with those in f32");
ABSL_FLAG(bool, ranges, false,
          "the largest and smallest magnitude of every value in f32, over --steps, what of it f16 "
          "cannot hold, and a policy");
ABSL_FLAG(std::string, write_policy, "",
          "file for the policy of --bisect or --ranges, which amp::Policy::ReadFile reads");
ABSL_FLAG(
    bool, nonfinite, false,
    "the first node, in forward and backward, that makes an output, a gradient or a new value "
    "not finite, in the first of --steps where one is");
ABSL_FLAG(double, tolerance, 0,
          "of --compare and --bisect, relative to the largest element of a value; "
          "0: 1e-4, or 3e-2 where the step has 16-bit values");
ABSL_FLAG(std::string, dump, "", "folder for the text of the graph after each pass");

namespace halftone {
namespace {

using cli::WrongOption;

// Rows of the table of --compare.
constexpr size_t kComparedRows = 20;
constexpr int kDiffers = 3;

// What the values of the last step are looked at for.
enum class Look : uint8_t { kNone, kReference, kPrecisions, kBisect, kRanges, kNonFinite };

// Whether it is for a step as the graph has it, not for steps in precisions of its own.
bool IsOfOneStep(Look look) {
  return look == Look::kNone || look == Look::kReference || look == Look::kNonFinite;
}

std::optional<DType> ParsePrecision(const std::string& name) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (name == Name(dtype)) return dtype;
  }
  return std::nullopt;
}

// Sets `look`.
absl::Status CheckLook(Look& look) {
  const std::vector<std::string> compare = absl::GetFlag(FLAGS_compare);
  const std::string bisect = absl::GetFlag(FLAGS_bisect);
  int looks = 0;
  const auto choose = [&](bool chosen, Look which) {
    if (chosen) look = which, ++looks;
  };
  choose(!compare.empty(), compare.size() == 1 ? Look::kReference : Look::kPrecisions);
  choose(!bisect.empty(), Look::kBisect);
  choose(absl::GetFlag(FLAGS_ranges), Look::kRanges);
  choose(absl::GetFlag(FLAGS_nonfinite), Look::kNonFinite);
  if (!absl::GetFlag(FLAGS_write_policy).empty() && look != Look::kBisect &&
      look != Look::kRanges) {
    return WrongOption("--write-policy: expected --bisect or --ranges with it");
  }
  if (looks == 0) return absl::OkStatus();
  if (looks > 1)
    return WrongOption("--compare, --bisect, --ranges, --nonfinite: expected one of them");
  if (look == Look::kReference && compare[0] != "reference") {
    return WrongOption("--compare=", compare[0], ": expected reference, or two of f32, f16, bf16");
  }
  if (look == Look::kPrecisions &&
      (compare.size() != 2 || !ParsePrecision(compare[0]) || !ParsePrecision(compare[1]))) {
    return WrongOption("--compare: expected reference, or two of f32, f16, bf16");
  }
  if (look == Look::kBisect && bisect != "f16" && bisect != "bf16") {
    return WrongOption("--bisect=", bisect, ": expected f16 or bf16");
  }
  if (!absl::GetFlag(FLAGS_out).empty() || !absl::GetFlag(FLAGS_profile).empty() ||
      (look != Look::kBisect && !absl::GetFlag(FLAGS_fetch).empty())) {
    return WrongOption("--compare, --bisect, --ranges, --nonfinite: show tables; expected no ",
                       look == Look::kBisect ? "--out" : "--fetch, --out", " or --profile");
  }
  if (!IsOfOneStep(look) && !absl::GetFlag(FLAGS_save).empty()) {
    return WrongOption("--save: steps in several precisions end in several states");
  }
  return absl::OkStatus();
}

// Sets both.
absl::Status CheckOptions(Device& device, Look& look) {
  const std::string name = absl::GetFlag(FLAGS_device);
  const absl::StatusOr<Device> parsed = ParseDevice(name);
  if (!parsed.ok()) {
    return WrongOption("--device=", name, ": expected cpu, reference, cuda or cuda:N");
  }
  device = *parsed;
  if (absl::GetFlag(FLAGS_steps) < 1) return WrongOption("--steps: expected 1 or more");
  HT_RETURN_IF_ERROR(
      cli::OptionError(Annotate(CheckNumThreads(absl::GetFlag(FLAGS_threads)), "--threads: ")));
  if (!(absl::GetFlag(FLAGS_tolerance) >= 0)) return WrongOption("--tolerance: expected 0 or more");
  if (device.kind == Device::Kind::kCuda) {
    const absl::Status opened = kernels::OpenCuda(device.index).status();
    if (!opened.ok()) return WrongOption("--device=", name, ": ", Message(opened));
  }
  HT_RETURN_IF_ERROR(CheckLook(look));
  if (look == Look::kReference && device.kind == Device::Kind::kReference) {
    return WrongOption("--compare=reference: expected --device=cpu or cuda");
  }
  return absl::OkStatus();
}

void PrintNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) cli::PrintMessage("note", note);
}

// A file name for each value: what is no letter, digit, '.', '_' or '-' becomes '_'; equal names
// are numbered.
std::vector<std::string> FileNames(const std::vector<std::string>& values) {
  std::vector<std::string> files;
  std::set<std::string> taken;
  for (std::string name : values) {
    for (char& c : name) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
    }
    std::string file = name;
    for (int i = 1; !taken.insert(file).second; ++i) file = Concat(name, "_", i);
    files.push_back(file + ".npy");
  }
  return files;
}

// Shows the values, as text or as files in `folder`.
absl::Status Show(const std::vector<std::string>& names, const std::vector<Tensor>& values,
                  const std::string& folder) {
  if (folder.empty()) {
    for (size_t i = 0; i < values.size(); ++i) {
      std::printf("%s %s =%c%s\n", Printable(names[i]).c_str(), values[i].TypeString().c_str(),
                  values[i].shape().rank() > 1 ? '\n' : ' ',
                  tools::FormatValues(values[i]).c_str());
    }
    return absl::OkStatus();
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return FailedPrecondition(folder, ": cannot create: ", error.message());
  const std::vector<std::string> files = FileNames(names);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string path = folder + "/" + files[i];
    HT_RETURN_IF_ERROR(io::WriteNpy(path, values[i]));
    std::printf("%s %s -> %s\n", Printable(names[i]).c_str(), values[i].TypeString().c_str(),
                path.c_str());
  }
  return absl::OkStatus();
}

// "step 2: loss = 0.5", of the values with one element.
void PrintScalars(int step, const std::vector<std::string>& names,
                  const std::vector<Tensor>& values) {
  std::printf("step %d:", step);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].num_elements() != 1) continue;
    std::printf(" %s = %s", Printable(names[i]).c_str(),
                tools::FormatValues(values[i].Reshape(Shape{})).c_str());
  }
  std::printf("\n");
}

// A graph with its feeds and the state of its variables.
struct Session {
  onnx::ImportedModel model;  // the graph as it was read
  tools::FetchedGraph graph;
  Device device;
  Look look = Look::kNone;
  std::string checkpoint;  // "": none
  std::vector<Tensor> feeds;
  runtime::VariableStore store;
  uint64_t run_count = 0;  // of the next step
};

// `file` in `folder` if it is there, else "".
std::string InFolder(const std::string& folder, const std::string& file) {
  std::error_code ignored;
  const std::string path = folder + "/" + file;
  return !folder.empty() && std::filesystem::exists(path, ignored) ? path : "";
}

// Gives the variables of a lowered graph their values; the count of the next step.
absl::StatusOr<uint64_t> LoadState(const Session& session, const ir::Graph& lowered,
                                   runtime::VariableStore& store) {
  uint64_t run_count = 0;
  if (!session.checkpoint.empty()) {
    HT_ASSIGN_OR_RETURN(const tools::LoadedVariables loaded,
                        tools::LoadVariables(session.checkpoint, lowered, store));
    if (IsOfOneStep(session.look)) PrintNotes(loaded.notes);
    run_count = loaded.run_count;
  }
  HT_RETURN_IF_ERROR(tools::GiveVariables(session.model.variables, lowered, store));
  return run_count;
}

absl::Status Prepare(const std::string& path, Session& session) {
  HT_RETURN_IF_ERROR(CheckOptions(session.device, session.look));
  std::error_code ignored;
  std::string folder;
  if (std::filesystem::is_directory(path, ignored)) {
    HT_ASSIGN_OR_RETURN(folder, tools::FindDumpFolder(path));
  }
  HT_ASSIGN_OR_RETURN(tools::Feeds feeds, tools::Feeds::Parse(absl::GetFlag(FLAGS_feed)));
  HT_RETURN_IF_ERROR(feeds.ReadFiles());
  HT_ASSIGN_OR_RETURN(session.model,
                      tools::ReadGraphOrModel(folder.empty() ? path : folder + "/00_input.txt",
                                              feeds.FileValues()));
  PrintNotes(session.model.notes);
  const ir::Graph& graph = *session.model.graph;
  if (!folder.empty()) {
    feeds.AddFrom(folder, graph);
    HT_RETURN_IF_ERROR(feeds.ReadFiles());
  }
  HT_ASSIGN_OR_RETURN(session.feeds, feeds.MakeTensors(graph));
  if (absl::GetFlag(FLAGS_threads) > 0) SetNumThreads(absl::GetFlag(FLAGS_threads));
  if (const std::string note = NoteOnThreads(absl::GetFlag(FLAGS_threads)); !note.empty()) {
    PrintNotes({note});
  }
  session.checkpoint = absl::GetFlag(FLAGS_variables);
  if (session.checkpoint.empty()) session.checkpoint = InFolder(folder, "variables.ckpt");
  if (!IsOfOneStep(session.look)) return absl::OkStatus();
  // What is asked for by name, or looked at node by node, may be part of what fuse makes one.
  const bool fuse = absl::GetFlag(FLAGS_fetch).empty() && session.look == Look::kNone;
  HT_ASSIGN_OR_RETURN(session.graph,
                      tools::LowerForFetches(graph, absl::GetFlag(FLAGS_fetch), session.device,
                                             absl::GetFlag(FLAGS_dump), fuse));
  PrintNotes(session.graph.notes);
  HT_ASSIGN_OR_RETURN(session.run_count, LoadState(session, *session.graph.lowered, session.store));
  return absl::OkStatus();
}

absl::Status RunSteps(Session& session) {
  const int steps = absl::GetFlag(FLAGS_steps);
  const std::vector<std::string>& names = session.graph.names;
  HT_ASSIGN_OR_RETURN(tools::Step step,
                      tools::Step::Create(session.graph.lowered->Clone(), session.device,
                                          absl::GetFlag(FLAGS_seed), session.store));
  std::optional<tools::Profiler> profiler;
  if (!absl::GetFlag(FLAGS_profile).empty()) profiler.emplace(step.executable());
  std::vector<Tensor> values;
  for (int i = 0; i < steps; ++i) {
    if (profiler) profiler->BeginStep();
    HT_ASSIGN_OR_RETURN(values, step.Run(session.feeds, session.run_count++));
    if (profiler) profiler->EndStep();
    if (steps > 1) PrintScalars(i, names, values);
  }
  HT_RETURN_IF_ERROR(Show(names, values, absl::GetFlag(FLAGS_out)));
  if (!profiler) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(const tools::Peak peak, tools::MeasurePeak(session.device));
  std::fputs(profiler->Table(peak).c_str(), stdout);
  return io::WriteFileAtomically(absl::GetFlag(FLAGS_profile), profiler->TraceJson());
}

// Sets `differs` if a value is over the tolerance.
absl::Status Compare(Session& session, bool* differs) {
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const ir::Graph& graph = *session.graph.lowered;
  if (absl::GetFlag(FLAGS_steps) > 1) {
    HT_ASSIGN_OR_RETURN(tools::Step step,
                        tools::Step::Create(graph.Clone(), session.device, seed, session.store));
    for (int i = 1; i < absl::GetFlag(FLAGS_steps); ++i) {
      HT_RETURN_IF_ERROR(step.Run(session.feeds, session.run_count++).status());
    }
  }
  HT_ASSIGN_OR_RETURN(const tools::Comparison comparison,
                      tools::CompareWithReference(graph, session.device, seed, session.store,
                                                  session.feeds, session.run_count++));
  double tolerance = absl::GetFlag(FLAGS_tolerance);
  if (tolerance == 0) tolerance = comparison.usual_tolerance;
  std::fputs(tools::ToTable(comparison, tolerance, kComparedRows).c_str(), stdout);
  *differs = tools::FirstKernelOver(comparison, tolerance) != nullptr;
  return absl::OkStatus();
}

// Sets `found` if a value of a step is not finite.
absl::Status LookForNonFinite(Session& session, bool* found) {
  const int steps = absl::GetFlag(FLAGS_steps);
  HT_ASSIGN_OR_RETURN(
      const tools::NonFiniteStep result,
      tools::FindNonFiniteStep(*session.graph.lowered, session.device, absl::GetFlag(FLAGS_seed),
                               session.store, session.feeds, steps, &session.run_count));
  *found = result.step >= 0;
  if (*found) {
    std::printf("step %d: %s\n", result.step, Printable(result.text).c_str());
  } else {
    std::printf("%d %s: outputs, gradients and new values are finite\n", steps,
                steps == 1 ? "step" : "steps");
  }
  return absl::OkStatus();
}

// Writes the file of --write-policy, if it is asked for.
absl::Status WritePolicy(const amp::Policy& policy) {
  const std::string path = absl::GetFlag(FLAGS_write_policy);
  return path.empty() ? absl::OkStatus() : policy.WriteFile(path);
}

// Tables of the step in several precisions. Sets `differs` if a value of --compare is over the tolerance.
absl::Status LookAtPrecision(const Session& session, bool* differs) {
  const tools::StepSource source{
      *session.model.graph,
      session.device,
      absl::GetFlag(FLAGS_seed),
      session.feeds,
      absl::GetFlag(FLAGS_steps),
      absl::GetFlag(FLAGS_fetch),
      [&session](const ir::Graph& lowered, runtime::VariableStore& store) {
        return LoadState(session, lowered, store);
      }};
  const double given = absl::GetFlag(FLAGS_tolerance);
  const double tolerance = given == 0 ? tools::kLowTolerance : given;
  std::string text;
  if (session.look == Look::kRanges) {
    HT_ASSIGN_OR_RETURN(const amp::RangeReport report, tools::MeasureRanges(source));
    text = tools::ToTable(report, source.traced, kComparedRows);
    HT_RETURN_IF_ERROR(WritePolicy(tools::ProposedPolicy(report, source.traced)));
  } else if (session.look == Look::kBisect) {
    const DType low = *ParsePrecision(absl::GetFlag(FLAGS_bisect));
    HT_ASSIGN_OR_RETURN(const tools::Culprits culprits,
                        tools::FindCulpritNodes(source, low, tolerance));
    text = tools::ToText(culprits, tolerance);
    HT_RETURN_IF_ERROR(WritePolicy(culprits.policy));
  } else {
    const std::vector<std::string> names = absl::GetFlag(FLAGS_compare);
    HT_ASSIGN_OR_RETURN(
        const auto differences,
        tools::ComparePrecisions(source, *ParsePrecision(names[0]), *ParsePrecision(names[1])));
    text = tools::ToTable(differences, tolerance, kComparedRows);
    *differs = tools::FirstOver(differences, tolerance) != nullptr;
  }
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

absl::Status Execute(Session& session, bool* differs) {
  switch (session.look) {
    case Look::kNone:
      return RunSteps(session);
    case Look::kReference:
      return Compare(session, differs);
    case Look::kNonFinite:
      return LookForNonFinite(session, differs);
    default:
      return LookAtPrecision(session, differs);
  }
}

int Main(const std::vector<char*>& arguments) {
  Session session;
  bool differs = false;
  absl::Status status =
      arguments.size() != 2
          ? WrongOption("expected one FILE or folder; halftone_run FILE --feed x=x.npy --fetch y")
          : Prepare(arguments[1], session);
  if (status.ok()) status = Execute(session, &differs);
  const std::string save = absl::GetFlag(FLAGS_save);
  if (status.ok() && !save.empty()) {
    status = tools::SaveVariables(save, session.store, session.run_count);
  }
  if (!status.ok()) cli::PrintMessage("halftone_run", Message(status));
  return status.ok() && differs ? kDiffers : cli::ExitStatus(status);
}

}  // namespace
}  // namespace halftone

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "halftone_run FILE|FOLDER|MODEL.onnx --feed x=x.npy --fetch y [--variables CHECKPOINT] [--seed N] "
      "[--steps N] [--out DIR] [--device cpu|reference|cuda[:N]] [--profile trace.json] "
      "[--compare reference|f32,f16] [--bisect f16] [--ranges] [--nonfinite]: runs a graph file");
  return halftone::cli::WithinMemory("halftone_run", [argc, argv] {
    return halftone::cli::FinishOutput("halftone_run",
                                       halftone::Main(halftone::cli::ParseCommandLine(argc, argv)));
  });
}
