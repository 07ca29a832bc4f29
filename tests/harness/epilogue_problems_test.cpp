// SPDX-License-Identifier: MIT
//
// Problems with an epilogue from the command line to their files: options and what is refused,
// names, bytes, --describe, .npy files there and back, special values. That wrong launches fail is
// the subject of planted_epilogues_test.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "common/harness/base/npy.h"
#include "common/harness/harness.cuh"
#include "common/harness/run/choices.h"
#include "common/harness/run/help.h"
#include "common/harness/run/options.h"
#include "common/harness/run/report.h"
#include "common/harness/verify/epilogue_check.h"
#include "common/harness/verify/problem_files.h"
#include "common/harness/verify/right_outputs.h"
#include "common/harness/verify/trials.h"
#include "epilogue_product.h"
#include "tests/process.h"

namespace gg {
namespace {

using planted::Product;
using testing_gg::error_of;
using testing_gg::Folder;
using Extents = std::vector<int64_t>;

const std::vector<Formats> kInputs = {formats_of(BlockScaled<e4m3, 32, ue8m0>{}),
                                      formats_of(BlockScaled<e2m1, 32, ue8m0>{}),
                                      formats_of(BlockScaled<e2m1, 16, ue4m3>{})};

Chapter quant() {
  return {.id = "x_quant",
          .k_multiple = 16,
          .n_multiple = 4,
          .m_multiple = 256,
          .pads_groups = true,
          .multiple_reason = "tiles",
          .sets = {"smoke", "edges"},
          .options = {"format", "tile"},
          .tiles = {{256, 256, 2}, {128, 256, 1}},
          .b_layouts = {BLayout::nk, BLayout::kn},
          .epilogue = {.op = Operator::quant,
                       .d_types = {Format::bf16, Format::f16, Format::f32, Format::e4m3, Format::e5m2},
                       .bias_types = {Format::bf16, Format::f16, Format::f32},
                       .sfd_row = true,
                       .sfd_col = true},
          .discrete_weights = true,
          .dynamic_schedule = true};
}
Chapter hadamard() {
  Chapter chapter = quant();
  chapter.id = "x_hadamard";
  chapter.b_layouts = {BLayout::nk};
  chapter.epilogue = {.op = Operator::glu_hadamard,
                      .d_types = {Format::bf16, Format::f16},
                      .c_types = {Format::bf16, Format::f16},
                      .bias_types = {Format::bf16},
                      .activations = {Activation::swiglu, Activation::geglu},
                      .butterfly = true};
  return chapter;
}
const std::vector<Formats> kFp4 = {kInputs[1], kInputs[2]};

Options parsed(std::vector<std::string> words, const Chapter& chapter = quant(),
               const std::vector<Formats>& inputs = kInputs) {
  words.insert(words.begin(), chapter.id);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(int(argv.size()), argv.data(), chapter, with_outputs(chapter, inputs));
}
std::vector<Shape> shapes_of(const std::vector<std::string>& words, const Chapter& chapter = quant(),
                             const std::vector<Formats>& inputs = kInputs) {
  const Options options = parsed(words, chapter, inputs);
  std::vector<std::string> left_out;
  return shapes_for(options, chapter, options.sets, left_out);
}
Setup setup_of(const Options& options) {
  gg::Setup setup;
  setup.request.formats = options.request.formats;
  setup.request.b_layout = options.request.b_layout;
  setup.host_offsets = false;
  setup.m_multiple = 256;
  setup.request.epilogue = options.request.epilogue;
  setup.request.weights = options.request.weights;
  setup.request.scheduler = options.request.scheduler;
  return setup;
}

void refused(const std::function<void()>& call, const std::string& sentence) {
  const auto error = error_of(call);
  ASSERT_TRUE(error) << "not refused: " << sentence;
  EXPECT_EQ(error->code, Exit::bad_input);
  EXPECT_NE(std::string(error->what()).find(sentence), std::string::npos) << error->what();
}

TEST(Outputs, AreThoseThatTheInputsGive) {
  EXPECT_EQ(format_names(with_outputs(quant(), kInputs)),
            (std::vector<std::string>{"mxfp8 -> bf16", "mxfp8 -> f16", "mxfp8 -> e4m3", "mxfp8 -> e5m2",
                                      "mxfp4 -> bf16", "mxfp4 -> f16", "mxfp4 -> f32", "nvfp4 -> bf16",
                                      "nvfp4 -> f16"}));
  EXPECT_EQ(with_outputs(hadamard(), kFp4).size(), 4u);
  EXPECT_TRUE(is_for(BlockScaled<e2m1, 16, ue4m3>{},
                     parsed({"--format", "nvfp4", "--d-dtype", "f16"}).request.formats));
  EXPECT_FALSE(is_for(BlockScaled<e2m1, 32, ue8m0>{},
                      parsed({"--format", "nvfp4", "--d-dtype", "f16"}).request.formats));
}

TEST(Options, ChooseTheEpilogue) {
  const Options o = parsed({"--d-dtype", "e5m2", "--norm-const", "0.25", "--bias", "--bias-dtype", "f16",
                            "--weights", "discrete", "--discrete-col-sfd", "--schedule", "dynamic"});
  EXPECT_EQ(o.request.formats.d, Format::e5m2);
  EXPECT_EQ(o.request.epilogue.norm_const, 0.25f);
  EXPECT_TRUE(o.request.epilogue.sfd_row && o.request.epilogue.sfd_col && o.request.epilogue.bias &&
              o.request.weights == Weights::discrete && o.request.scheduler == Scheduler::dynamic &&
              o.request.epilogue.discrete_col_sfd && o.request.epilogue.amax);
  EXPECT_EQ(o.request.epilogue.bias_format, Format::f16);
  EXPECT_EQ(kernel_name(quant(), o, {}, ""),
            "grouped_gemm d=e5m2 bias=f16 sfd=discrete weights=discrete dynamic");
  const Options g =
      parsed({"--act", "geglu", "--c-dtype", "f16", "--transform", "butterfly"}, hadamard(), kFp4);
  EXPECT_EQ(g.request.epilogue.activation, Activation::geglu);
  EXPECT_EQ(g.request.formats.c, Format::f16);
  EXPECT_EQ(kernel_name(hadamard(), g, {}, ""), "grouped_gemm c=f16 act=geglu butterfly");
  EXPECT_EQ(kernel_name(quant(), parsed({}), {}, ""), "grouped_gemm");
}

TEST(Options, AreRefusedInASentence) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--format", "nvfp4", "--d-dtype", "f32"}, "--format nvfp4 --d-dtype f32: x_quant has mxfp8 -> bf16"},
      {{"--format", "mxfp4", "--d-dtype", "e4m3"}, "--format mxfp4 --d-dtype e4m3"},
      {{"--d-dtype", "f32"}, ""},  // of mxfp4
      {{"--format", "mxfp8", "--d-dtype", "f32"}, "--format mxfp8 --d-dtype f32"},
      {{"--norm-const", "0.01"}, "norm_const 0.01: scales are made for D of e4m3 or e5m2, it is bf16"},
      {{"--d-dtype", "e4m3", "--norm-const", "0"}, "--norm-const 0: a finite number above 0"},
      {{"--d-dtype", "e4m3", "--norm-const", "-1"}, "--norm-const -1: a finite number above 0"},
      {{"--d-dtype", "e4m3", "--norm-const", "inf"}, "--norm-const inf: a finite number above 0"},
      {{"--d-dtype", "e4m3", "--norm-const", "nan"}, "--norm-const nan: a finite number above 0"},
      {{"--d-dtype", "e4m3", "--norm-const", "one"}, "--norm-const one: not a number"},
      {{"--weights", "sparse"}, "--weights sparse: dense or discrete are accepted"},
      {{"--schedule", "fair"}, "--schedule fair: static or dynamic are accepted"},
      {{"--bias-dtype", "f16"}, "--bias-dtype f16: there is no bias: add --bias"},
      {{"--bias", "--bias-dtype", "e4m3"}, "--bias-dtype e4m3: x_quant has bf16, f16, f32"},
      {{"--bias", "--bias-dtype", "f32", "--weights", "discrete"},
       "a bias of f32 goes with dense weights only"},
      {{"--format", "nvfp4", "--b-layout", "kn"},
       "--b-layout kn: nvfp4 packs two elements along K into a byte"},
      {{"--peer", "cublas_loop"}, "--peer cublas_loop: x_quant computes more than a product"},
      {{"--act", "swiglu"}, "--act: x_quant has no such option"},
      {{"--tile", "256x256", "--cluster", "1x1"}, "--tile 256x256 --cluster 1x1"},
  };
  for (const auto& [words, sentence] : cases) {
    if (sentence.empty()) {
      EXPECT_NO_THROW(parsed(words));
    } else {
      refused([&, words = words] { parsed(words); }, sentence);
    }
  }
  refused([] { parsed({"--act", "relu"}, hadamard(), kFp4); }, "--act relu: x_hadamard has swiglu, geglu");
  refused([] { parsed({"--c-dtype", "f32"}, hadamard(), kFp4); }, "--c-dtype f32: x_hadamard has bf16, f16");
  refused([] { parsed({"--transform", "fast"}, hadamard(), kFp4); }, "--transform fast: tensor or butterfly");
}

TEST(Shapes, AreRefusedInASentence) {
  const auto shape = [](const char* n, const char* k, std::vector<std::string> words) {
    for (const char* each : {"--m", "256,256", "--n", n, "--k", k}) words.push_back(each);
    return words;
  };
  refused(
      [&] {
        shapes_of(shape("88", "32", {"--d-dtype", "e4m3"}));
      },
      "N=88: x_quant wants multiples of 16 here (a row of D in e4m3 is whole 16 bytes): pad to 96");
  refused([&] { shapes_of(shape("84", "32", {})); },
          "N=84: x_quant wants multiples of 8 here (a row of D in bf16");
  refused(
      [&] {
        shapes_of(shape("72", "32", {"--b-layout", "kn"}));
      },
      "N=72: x_quant wants multiples of 16 here (a row of B in e4m3 is whole 16 bytes): pad to 80");
  refused(
      [&] {
        shapes_of(shape("64", "48", {"--format", "mxfp4"}));
      },
      "K=48: x_quant wants multiples of 32 here (a row of A in e2m1 is whole 16 bytes): pad to 64");
  refused([&] { shapes_of(shape("96", "32", {}), hadamard(), kFp4); },
          "N=96: x_hadamard wants multiples of 64 here (32 columns of gate are followed by 32 of up): pad to "
          "128");
  refused(
      [&] {
        shapes_of({"--m", "0", "--groups", "1025", "--n", "64", "--k", "32"});
      },
      "--groups 1025: must lie between 1 and 1024");
  refused(
      [&] {
        shapes_of({"--m", "256,128", "--n", "64", "--k", "32"});
      },
      "M=128 of group 1: x_quant wants multiples of 256");
  EXPECT_EQ(shapes_of(shape("8", "16", {})).size(), 1u);
}

TEST(Shapes, OfSetsHaveSpareRowsInEverySecondProblem) {
  const std::vector<Shape> shapes = shapes_of({"--set", "edges", "--d-dtype", "e4m3"});
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(shapes[i].rows, shapes[i].m_total() + (i % 2 ? 0 : 136));
    EXPECT_EQ(shapes[i].n_of(0) % 16, 0);
  }
  EXPECT_EQ(shapes_of({"--m", "256", "--n", "64", "--k", "32"})[0].rows, 256);
}

TEST(Bytes, ThatNoLaunchCanAvoid) {
  const Shape shape{{256, 0}, {96}, {64}};
  const Formats bf16_d = formats_of(BlockScaled<e4m3, 32, ue8m0>{});
  const double plain = unavoidable_bytes(shape, bf16_d);
  EXPECT_EQ(plain, 256 * 64 + 256 * 2 + 256 * 96 * 2 + 96 * 64 + 96 * 2);
  Epilogue e{.op = Operator::quant, .amax = true, .bias = true};
  EXPECT_EQ(unavoidable_bytes(shape, bf16_d, e) - plain, 4 + 4 + 256 * 4 + 96 * 2);
  Formats fp8 = bf16_d;
  fp8.d = Format::e4m3;
  e = {.op = Operator::quant, .sfd_row = true, .sfd_col = true};
  EXPECT_EQ(unavoidable_bytes(shape, fp8, e) - unavoidable_bytes(shape, fp8),
            4 + 256 * 4 + 256 * 3 + 256 * 96 + 96 * 8);
  e = {.op = Operator::glu};
  EXPECT_EQ(unavoidable_bytes(shape, bf16_d, e) - plain, 4 + 256 * 4 + 256 * 96 * 2 - 256 * 48 * 2);
  e = {.op = Operator::glu, .stores_c = false};
  EXPECT_EQ(unavoidable_bytes(shape, bf16_d, e) - plain, 4 + 256 * 4 - 256 * 48 * 2);
}

// A chapter that names no types of C stores none, and its operands need no scales.
TEST(Description, HasNoCWhereNoneIsStored) {
  Chapter chapter = hadamard();
  chapter.epilogue.op = Operator::glu;
  chapter.epilogue.c_types = {};
  chapter.epilogue.amax = false;
  const std::vector<Formats> inputs = {formats_of(Same<bf16>{})};
  EXPECT_FALSE(parsed({}, chapter, inputs).request.epilogue.has_c());
  EXPECT_TRUE(parsed({}, hadamard(), kFp4).request.epilogue.has_c());
  const std::string about = describe_text(chapter, with_outputs(chapter, inputs));
  for (const char* name : {"a", "b", "offsets", "d", "alpha", "prob", "bias"})
    EXPECT_NE(about.find(format("{\"name\": \"%s\"", name)), std::string::npos) << name << "\n" << about;
  for (const char* name : {"c", "amax", "sfa", "sfb"})
    EXPECT_EQ(about.find(format("{\"name\": \"%s\"", name)), std::string::npos) << name << "\n" << about;
  refused([&] { parsed({"--c-dtype", "f16"}, chapter, inputs); }, "x_hadamard has no such option");
}

TEST(Description, ListsOperandsAndWhenTheyAreThere) {
  const std::string about = describe_text(quant(), with_outputs(quant(), kInputs));
  for (const char* part :
       {"\"epilogue\": {\"operator\": \"quant\", \"c\": [], \"bias\": [\"bf16\", \"f16\", \"f32\"], "
        "\"bias_with_discrete_weights\": [\"bf16\", \"f16\"], \"act\": []}",
        "{\"name\": \"b_00000 ...\", \"shape\": \"[N,K]\"", "\"when\": \"with --weights discrete\"",
        "{\"name\": \"prob\", \"shape\": \"[M]\", \"type\": \"f32\"",
        "\"name\": \"sfd_col\", \"shape\": \"[ceil(N/128),", "\"groups\": 1024", "\"norm-const\"",
        "{\"name\": \"d\", \"shape\": \"[M,N]\""}) {
    EXPECT_NE(about.find(part), std::string::npos) << part << "\n" << about;
  }
  const std::string gated = describe_text(hadamard(), with_outputs(hadamard(), kFp4));
  for (const char* part :
       {"{\"name\": \"d\", \"shape\": \"[M,N/2]\"", "\"name\": \"hadamard\", \"shape\": \"[16,16]\"",
        "\"name\": \"c\", \"shape\": \"[M,N]\", \"type\": \"bf16 or f16\""}) {
    EXPECT_NE(gated.find(part), std::string::npos) << part << "\n" << gated;
  }
  EXPECT_NE(help_text(hadamard(), with_outputs(hadamard(), kFp4)).find("Activations: swiglu, geglu."),
            std::string::npos);
}

// Writes a .npy again, changed.
void change(const std::string& path, const std::function<void(NpyArray&)>& how) {
  NpyArray array = read_npy(path);
  how(array);
  write_npy(path, array.type, array.shape, array.data.data(), array.data.size());
}
void put(const std::string& path, size_t element, float value) {
  change(path, [&](NpyArray& array) { std::memcpy(array.data.data() + element * 4, &value, 4); });
}

// A chapter whose D is always in blocks.
TEST(Options, HaveScalesWhereTheChapterSaysSo) {
  Chapter chapter = quant();
  chapter.epilogue.d_types = {Format::e4m3};
  chapter.epilogue.norm_const = 0.5f;
  const std::vector<Formats> fp8 = {kInputs[0]};
  const Options usual = parsed({}, chapter, fp8), given = parsed({"--norm-const", "2"}, chapter, fp8);
  EXPECT_TRUE(usual.request.epilogue.sfd_row && usual.request.epilogue.sfd_col);
  EXPECT_EQ(usual.request.epilogue.norm_const, 0.5f);
  EXPECT_EQ(given.request.epilogue.norm_const, 2.0f);
  EXPECT_EQ(parsed({"--in", "."}, chapter, fp8).request.epilogue.norm_const, 0) << "the folder says it";
}

struct Files {
  std::vector<std::string> words;
  bool gated = false;
};

void come_back(const Files& files) {
  const Chapter chapter = files.gated ? hadamard() : quant();
  const gg::Setup setup = setup_of(parsed(files.words, chapter, files.gated ? kFp4 : kInputs));
  const Folder first, second;
  const std::unique_ptr<Machine> machine = host_machine();
  Shape shape{{256, 0, 256}, {192}, {96}, "files"};
  shape.rows = 700;
  write_problem(*machine, setup, Product(), shape, nullptr, 1, first.path);
  const auto given = read_operands(first.path, setup, chapter, false);
  EXPECT_EQ(given->shape.rows, 700);
  EXPECT_EQ(given->request.epilogue.bias, setup.request.epilogue.bias);
  EXPECT_EQ(given->request.epilogue.sfd_col, setup.request.epilogue.sfd_col);
  const CheckResult result = check_given(*machine, setup, Product(), *given);
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  write_problem(*machine, setup, Product(), given->shape, given.get(), 2, second.path);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(first.path)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(testing_gg::text_of(first.at(name)), testing_gg::text_of(second.at(name))) << name;
    ++count;
  }
  EXPECT_GE(count, 9);
  EXPECT_EQ(read_npy(first.at("prob.npy")).shape, Extents{700});
  EXPECT_EQ(read_npy(first.at("d.npy")).shape, (Extents{700, files.gated ? 96 : 192}));
}

TEST(Files, ComeBack) {
  come_back({{}});
  come_back({{"--bias", "--d-dtype", "e4m3", "--norm-const", "0.1"}});
  come_back(
      {{"--bias", "--d-dtype", "e5m2", "--norm-const", "3", "--discrete-col-sfd", "--weights", "discrete"}});
  come_back({{"--weights", "discrete", "--b-layout", "kn"}});
  come_back({{"--bias"}, true});
}

class Folders : public testing::Test {
 protected:
  void write(const std::vector<std::string>& words, const Chapter& chapter = quant(),
             const std::vector<Formats>& inputs = kInputs) {
    chapter_ = chapter;
    setup_ = setup_of(parsed(words, chapter, inputs));
    Shape shape{{256, 256}, {128}, {96}, "files"};
    shape.rows = 512;
    write_problem(*machine_, setup_, Product(), shape, nullptr, 1, folder_.path);
  }
  std::unique_ptr<GivenOperands> read() { return read_operands(folder_.path, setup_, chapter_, false); }
  void refused_with(const std::string& sentence) {
    refused([this] { read(); }, sentence);
  }
  CheckResult checked(const std::string& bug = "") {
    const auto given = read();
    gg::Setup setup = setup_;
    setup.request = given->request;
    return check_given(*machine_, setup, Product(bug), *given);
  }
  std::string at(const char* name) const { return folder_.at(name); }
  const std::unique_ptr<Machine> machine_ = host_machine();
  Folder folder_;
  Chapter chapter_;
  gg::Setup setup_;
};

TEST_F(Folders, SayTheFactorOfAChapterThatHasOneAnyway) {
  Chapter chapter = quant();
  chapter.epilogue.d_types = {Format::e4m3};
  chapter.epilogue.norm_const = 0.5f;
  write({"--norm-const", "2"}, chapter, {kInputs[0]});
  setup_.request.epilogue = parsed({"--in", folder_.path}, chapter, {kInputs[0]}).request.epilogue;
  EXPECT_EQ(read()->request.epilogue.norm_const, 2.0f);
  std::filesystem::remove(at("norm_const.npy"));
  const auto given = read();
  EXPECT_EQ(given->request.epilogue.norm_const, 0.5f);
  EXPECT_TRUE(given->request.epilogue.sfd_row && given->request.epilogue.sfd_col);
  setup_.request.epilogue = parsed({"--norm-const", "2"}, chapter, {kInputs[0]}).request.epilogue;
  EXPECT_EQ(read()->request.epilogue.norm_const, 2.0f);
}

TEST_F(Folders, AreRefusedInASentence) {
  write({"--d-dtype", "e4m3", "--norm-const", "0.1", "--bias"});
  setup_.request.epilogue.norm_const = 0.2f;
  refused_with(
      "norm_const.npy: is 0.100000001, --norm-const is 0.200000003: they must agree: leave --norm-const out");
  setup_.request.epilogue.norm_const = 0.1f;
  setup_.request.formats.d = Format::bf16;
  refused_with("scales are made for D of e4m3 or e5m2, it is bf16");
  setup_.request.formats.d = Format::e4m3;
  put(at("norm_const.npy"), 0, -2);
  refused_with("norm_const.npy: -2: a finite number above 0");
  put(at("norm_const.npy"), 0, 0.1f);
  change(at("alpha.npy"), [](NpyArray& array) { array.shape = {2, 1}; });
  refused_with("alpha.npy: has shape [2, 1]");
  change(at("alpha.npy"), [](NpyArray& array) { array.shape = {1}, array.data.resize(4); });
  refused_with("alpha.npy: has shape [1], [2] is wanted: give one per group");
  write({"--d-dtype", "e4m3", "--norm-const", "0.1", "--bias"});
  change(at("prob.npy"), [](NpyArray& array) { array.type = "<f8", array.shape = {256}; });
  refused_with("prob.npy");
  std::filesystem::remove(at("prob.npy"));
  refused_with("prob.npy: cannot be read");
  write({"--bias"});
  change(at("bias.npy"), [](NpyArray& array) { array.type = "<i2"; });
  refused_with("bias.npy: has type '<i2', x_quant has '<u2' (bf16), '<f2' (f16), '<f4' (f32)");
  std::filesystem::remove(at("bias.npy"));
  refused_with("--bias: ");
  change(at("offsets.npy"), [](NpyArray& array) { array.data[1] = 0, array.data[0] = 64; });
  setup_.request.epilogue.bias = false;
  std::filesystem::remove(at("norm_const.npy"));
  refused_with("M=64 of group 0: x_quant wants multiples of 256");
}

TEST_F(Folders, OfWrongWeightsAreRefused) {
  write({"--weights", "discrete"});
  setup_.request.weights = Weights::dense;
  refused_with("b_00000.npy: weights of one expert each want --weights discrete");
  setup_.request.weights = Weights::discrete;
  change(at("b_00001.npy"), [](NpyArray& array) { array.shape[0] = 64, array.data.resize(64 * 96); });
  refused_with("b_00001.npy: has shape [64, 96], group 0 has [128, 96]");
  std::filesystem::remove(at("b_00001.npy"));
  refused_with("b_00001.npy: cannot be read");
}

TEST_F(Folders, WithSignsInScalesOrAnotherTransformAreRefused) {
  write({"--format", "nvfp4"});
  change(at("sfb.npy"), [](NpyArray& array) { array.data[5] = char(0xB8); });
  refused_with("sfb.npy: byte 5 is 0xB8: a UE4M3 scale has no sign");
  Folder other;
  write({"--transform", "butterfly"}, hadamard(), kFp4);
  change(at("hadamard.npy"), [](NpyArray& array) { array.data[1] = 0; });
  refused_with("hadamard.npy: is not the Sylvester matrix, and --transform butterfly computes no other");
}

TEST_F(Folders, OfSpecialValuesPassAndMistakesInThemFail) {
  write({"--d-dtype", "e4m3", "--norm-const", "1024"});
  put(at("prob.npy"), 3, NAN);
  put(at("prob.npy"), 40, INFINITY);
  put(at("prob.npy"), 70, 0);
  put(at("prob.npy"), 71, 0x1p-149f);
  put(at("prob.npy"), 100, 0x1p+115f);  // raw beyond 2^126
  put(at("prob.npy"), 130, -INFINITY);
  change(at("a.npy"), [](NpyArray& array) { array.data[300 * 96 + 5] = 0x7F; });
  CheckResult result = checked();
  EXPECT_FALSE(result.failure) << result.failure->sentence;
  result = checked("FactorNotCapped");
  ASSERT_TRUE(result.failure);
  EXPECT_NE(result.failure->sentence.find("zeros become NaN"), std::string::npos) << result.failure->sentence;
}

TEST_F(Folders, OfSpecialValuesPassBehindAnActivation) {
  write({"--bias"}, hadamard(), kFp4);
  put(at("prob.npy"), 3, NAN);
  put(at("prob.npy"), 40, INFINITY);
  put(at("alpha.npy"), 1, 1e6f);
  const CheckResult result = checked();
  EXPECT_FALSE(result.failure) << result.failure->sentence;
}

// More than 2^28 products: three bands of rows are judged, and amax from below.
TEST(Sample, OfALargeProblemIsJudged) {
  const std::unique_ptr<Machine> machine = host_machine();
  gg::Setup setup = setup_of(parsed({"--d-dtype", "e4m3", "--norm-const", "1"}));
  Shape shape{{512, 512}, {512}, {544}};
  shape.rows = 1024;
  Buffers buffers(*machine, setup, shape);
  buffers.fill_operands({Fill::Kind::normal, 0, 3, 0});
  buffers.poison(0xFF);
  Product()(buffers.problem(), nullptr);
  EXPECT_TRUE(right_outputs(*machine, buffers, 1));
  buffers.poison(0xFF);
  Product("ScaleDown")(buffers.problem(), nullptr);
  EXPECT_FALSE(right_outputs(*machine, buffers, 1));
}

TEST(Scales, OfColumnsLieWhereTheLayoutsSay) {
  // M=1024, N=512, off=(256,512,1024), m=300, n=300: 9413 over all rows, 6341 expert by expert.
  EXPECT_EQ((ScaleLayout{512, 32}).offset(300, 300 / 32), 9413);
  EXPECT_EQ((ScaleLayout{512, 8}).bytes() + (ScaleLayout{512, 8}).offset(300, (300 - 256) / 32), 6341);
}

}  // namespace
}  // namespace gg
