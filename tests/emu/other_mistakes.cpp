// SPDX-License-Identifier: MIT
//
// Planted mistakes with traps, launches, descriptors, tensor maps, tensor memory, and one with
// lines of a source.

#include "common/emu/core/units/tensor_map_format.h"
#include "tests/emu/mistakes.h"

namespace emu_test {

namespace {

// A wgmma over tiles of zeros: 16 columns of K, rows of 32 bytes, with this in place of the
// descriptor of B.
std::string wgmma(const std::string& change_b) {
  return kernel(R"(
    .shared .align 1024 .b8 tile[4096];
    mad.lo.u32 %r10, %r0, 32, tile;
    mov.u32 %r11, 0;
    st.shared.v4.u32 [%r10], {%r11, %r11, %r11, %r11};
    st.shared.v4.u32 [%r10+16], {%r11, %r11, %r11, %r11};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    mov.u32 %r10, tile;
    shr.u32 %r10, %r10, 4;
    cvt.u64.u32 %rd10, %r10;
    or.b64 %rd10, %rd10, 0xC000001000010000;
    mov.b64 %rd11, %rd10;
    )" + change_b +
                R"(
    setp.ne.u32 %p1, %r2, 128;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, %rd11, %p1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    st.global.f32 [%rd2], %f0;)");
}

// A tensor map of 64 x 64 words.
Words tensor_map() {
  gg::emu::TensorMap map;
  map.type = gg::emu::MapType::u32;
  map.address = 0x1000;
  map.rank = 2;
  map.dims[0] = map.dims[1] = 64;
  map.strides[1] = 256;
  map.box[0] = map.box[1] = 8;
  Words words(32);
  gg::emu::encode_tensor_map(map, reinterpret_cast<uint8_t*>(words.data()));
  return words;
}

}  // namespace

std::vector<Mistake> other_mistakes() {
  std::vector<Mistake> all;
  const Config warp = config_of(1, 32);
  all.push_back({"trap", FaultKind::trap, kernel("setp.eq.u32 %p0, %r0, 7;\n@%p0 trap;\n"),
                 kernel("setp.eq.u32 %p0, %r0, 70;\n@%p0 trap;\n"), warp});
  const auto text = [](const std::string& name, const std::string& content) {
    std::string bytes;
    for (const char c : content) bytes += std::to_string(int(c)) + ", ";
    return ".global .align 1 .b8 " + name + "[" + std::to_string(content.size() + 1) + "] = {" + bytes +
           "0};\n";
  };
  const std::string before =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 "
      "e);\n" +
      text("condition", "row < rows") + text("file", "kernel.cu") + text("function", "void k(float *, int)");
  const auto asserted = [&](const char* limit) {
    return kernel(std::string("setp.lt.u32 %p0, %r0, ") + limit + R"(;
    @%p0 bra FINE;
    {
    .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    mov.u64 %rd3, condition;
    mov.u64 %rd4, file;
    mov.u64 %rd5, function;
    mov.u64 %rd6, 1;
    st.param.b64 [a], %rd3;
    st.param.b64 [b], %rd4;
    st.param.b32 [c], 57;
    st.param.b64 [d], %rd5;
    st.param.b64 [e], %rd6;
    call.uni __assertfail, (a, b, c, d, e);
    }
    FINE:)",
                  before);
  };
  all.push_back({"trap_assertion", FaultKind::trap, asserted("20"), asserted("32"), warp});
  const auto unknown = [](const char* when) {
    return kernel(std::string("setp.eq.u32 %p0, %r2, ") + when + ";\n@%p0 txq.width.b32 %r10, [%rd1];\n");
  };
  all.push_back({"unsupported", FaultKind::unsupported, unknown("32"), unknown("64"), warp});
  const auto modifier = [](const char* when) {
    return kernel(std::string("setp.eq.u32 %p0, %r2, ") + when + ";\n@%p0 add.rn.u32 %r10, %r0, %r0;\n");
  };
  all.push_back({"unsupported_modifier", FaultKind::unsupported, modifier("32"), modifier("64"), warp});
  const std::string plain = kernel("st.global.u32 [%rd2], %r0;\n");
  all.push_back({"launch_too_many_threads",
                 FaultKind::launch,
                 plain,
                 plain,
                 config_of(1, 1056),
                 {},
                 config_of(1, 1024)});
  all.push_back({"launch_grid_and_cluster",
                 FaultKind::launch,
                 plain,
                 plain,
                 config_of(6, 32, 4),
                 {},
                 config_of(8, 32, 4)});
  all.push_back({"descriptor_reserved_bits", FaultKind::descriptor, wgmma("or.b64 %rd11, %rd11, 0x4000;\n"),
                 wgmma(""), config_of(1, 128)});
  // A box that lies outside, so that nothing is read.
  const std::string load = kernel(R"(
    .shared .align 128 .b8 tile[256];
    .shared .align 8 .b64 full;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra END;
    mbarrier.init.shared::cta.b64 [full], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
    mov.u32 %r10, 64;
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r10, %r10}], [full];
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0;
    @!%p1 bra WAIT;
    END:)");
  Mistake map{"tensor_map_that_is_none", FaultKind::tensor_map, load, load, warp, Words(32, 0xFFFFFFFF)};
  map.right_in = tensor_map();
  all.push_back(map);
  return all;
}

// Warp 1 has the tensor core shift lanes 0 to 31.
std::vector<Mistake> tensor_memory_mistakes() {
  const std::string free = R"(
    bar.sync 0;
    @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;
    )";
  const auto load = [&](const char* columns) {
    return std::string("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r10+") + columns +
           "];\ntcgen05.wait::ld.sync.aligned;\nst.global.u32 [%rd2], %r11;\n" + free;
  };
  const std::string shift = R"(
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    mov.u32 %r12, done;
    @%p2 tcgen05.shift.cta_group::1.down [%r10];
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r12];
    )",
                    wait = R"(
    WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [done], 0;
    @!%p3 bra WAIT;
    )",
                    after = "tcgen05.fence::after_thread_sync;\n";
  const auto of_rank = [&](const char* shift_of_rank) {  // the lane is in bits 16 and up
    return with_tensor_memory(
        std::string("mov.u32 %r12, %cluster_ctarank;\nshl.b32 %r12, %r12, ") + shift_of_rank +
        ";\nadd.u32 %r12, %r12, %r10;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r11}, [%r12];\n"
        "tcgen05.wait::ld.sync.aligned;\nst.global.u32 [%rd2], %r11;\n" +
        free);
  };
  return {{"tmem_lane_of_the_pair", FaultKind::tmem_lane, of_rank("23"), of_rank("1"), config_of(2, 64, 2)},
          {"uninit_tmem_a_column_too_far", FaultKind::uninit_tmem, with_tensor_memory(load("8")),
           with_tensor_memory(load("7")), config_of(1, 128)},
          {"tcgen05_columns_not_given_back", FaultKind::tcgen05, with_tensor_memory(""),
           with_tensor_memory(free), config_of(1, 128)},
          {"tcgen05_fence_behind_the_wait", FaultKind::tcgen05_fence,
           with_tensor_memory(shift + wait + load("0")), with_tensor_memory(shift + wait + after + load("0")),
           config_of(1, 64)},
          {"async_window_of_the_tensor_core", FaultKind::async_window,
           with_tensor_memory(shift + "bar.sync 0;\n" + after + load("0") + wait),
           with_tensor_memory(shift + wait + after + load("0")), config_of(1, 64)}};
}

// A kernel of CUDA C++: a template with a long name, arrays with mangled names, lines of a source
// file, a wrapper.
std::vector<Mistake> source_mistakes() {
  const auto with_lines = [](const char* sync) {
    return std::string(R"(.version 9.0
.target sm_80
.address_size 64
.visible .entry _ZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iii(
  .param .u64 _ZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iii_param_0,
  .param .u64 _ZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iii_param_1)
{
.reg .b32 %r<8>;
.reg .b64 %rd<4>;
.shared .align 16 .b8 _ZZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iiiE6a_tile[256];
.loc 1 9 3
mov.u32 %r0, %tid.x;
mov.u32 %r1, _ZZN7chapter12grouped_gemmI13__nv_bfloat16S1_fLi128ELi128ELi64ELi4EEEvPKT_PKT0_PT1_iiiE6a_tile;
mad.lo.u32 %r2, %r0, 4, %r1;
.loc 1 4 3, function_name $L__info_string0, inlined_at 1 10 3
st.shared.u32 [%r2], %r0;
.loc 1 11 3
)") + sync +
           R"(
xor.b32 %r3, %r0, 32;
mad.lo.u32 %r3, %r3, 4, %r1;
.loc 2 3 3, function_name $L__info_string1, inlined_at 1 12 5
ld.shared.u32 %r4, [%r3];
ret;
}
.file 1 "SOURCE/tests/emu/golden/kernel.cu"
.file 2 "SOURCE/tests/emu/golden/wrapper.cuh"
)";
  };
  const auto placed = [](std::string text) {
    for (size_t at; (at = text.find("SOURCE")) != std::string::npos;) text.replace(at, 6, GG_SOURCE_DIR);
    return text;
  };
  return {{"source_lines", FaultKind::uninit_shared, placed(with_lines("")),
           placed(with_lines("bar.sync 0;")), config_of(1, 64)}};
}

}  // namespace emu_test
