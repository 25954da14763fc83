// Texts of the frame around the pages, and of what all pages have in common: [English, Chinese].

export default {
  'app.skip': ['Skip to content', '跳到主要内容'],
  'app.sections': ['Sections', '栏目'],
  'app.reload': ['Reload', '重新加载'],
  'app.loading': ['Loading…', '正在加载…'],
  'app.notFound': ['There is no such page', '没有这个页面'],
  'app.notFound.hint': ['The address may be mistyped, or what it named is gone.', '地址可能有误，或者它所指的内容已经不存在。'],
  'app.toTasks': ['Go to the tasks', '前往任务'],

  'nav.tasks': ['Tasks', '任务'],
  'nav.new': ['New task', '新建任务'],
  'nav.checkpoints': ['Checkpoints', '检查点'],
  'nav.sessions': ['Sessions', '会话'],
  'nav.exports': ['Exports', '导出'],
  'nav.settings': ['Settings', '设置'],
  'nav.diagnostics': ['Diagnostics', '诊断'],

  'theme.light': ['Use the light theme', '使用浅色主题'],
  'theme.dark': ['Use the dark theme', '使用深色主题'],

  'link.label': ['Connection', '连接'],
  'link.connecting': ['Connecting', '正在连接'],
  'link.live': ['Live', '实时'],
  'link.polling': ['Updating every few seconds', '每隔几秒更新'],
  'link.lost': ['No connection', '连接中断'],

  'main.label': ['Main conversation', '主会话'],
  'main.none': ['No main conversation', '没有主会话'],
  'main.none.hint': ['A main conversation is the one with your own agent, from which tasks can be started. Nothing needs it here. To report results to one, attach its client:', '主会话是你与自己的智能体的对话，可以从中发起任务。这里的功能都不依赖它。要把结果回报给它，请连接它的客户端：'],
  'main.choose': ['Choose a main conversation', '选择主会话'],

  'banner.noRoot': [
    'No sandbox root is set yet. Tasks are refused until there is one: a directory of their own, in which they may write.',
    '还没有设置沙箱根目录。在设置之前，任务都会被拒绝：任务需要一个专用的、可以写入的目录。',
  ],
  'banner.noRoot.go': ['Set a sandbox root', '设置沙箱根目录'],
  'banner.willBeMade': ['The sandbox root does not exist yet; it is made with the first task:', '沙箱根目录尚不存在，将在第一个任务开始时创建：'],
  'banner.inside': [
    'The sandbox root lies inside the workspace of the main conversation, so that conversation sees what tasks write:',
    '沙箱根目录位于主会话的工作目录之内，主会话会看到任务写入的内容：',
  ],
  'banner.temp': [
    'The sandbox root lies in a directory for temporary files, where the system may remove what tasks made:',
    '沙箱根目录位于临时文件目录中，系统可能会清除任务产生的文件：',
  ],
  'banner.root': ['Tasks work below', '任务在此目录下工作：'],
  'banner.change': ['Change it in the settings', '在设置中更改'],

  'core.starting': ['The task store is starting.', '任务存储正在启动。'],
  'core.mismatch': ['The task store is of another release: no task can start.', '任务存储版本不一致：不能启动任务。'],
  'core.down': ['The task store is gone and will be started again.', '任务存储已停止，将会重新启动。'],

  'do.cancel': ['Cancel', '取消'],
  'do.close': ['Close', '关闭'],
  'do.retry': ['Try again', '重试'],
  'do.refresh': ['Refresh', '刷新'],
  'do.view': ['View', '查看'],
  'do.copy': ['Copy', '复制'],
  'done.copied': ['Copied', '已复制'],
  'done.notCopied': ['The browser does not let this page copy. Select the text, and copy it by hand.', '浏览器不允许此页面复制。请选中文本后手动复制。'],
  'do.choose': ['Choose a directory…', '选择目录…'],

  'pager.label': ['Pages', '分页'],
  'pager.range': ['{from}–{to} of {count}', '第 {from}–{to} 项，共 {count} 项'],
  'pager.previous': ['Previous', '上一页'],
  'pager.next': ['Next', '下一页'],
  'text.more': ['Show more of the text ({left} characters left)', '显示更多文本（还有 {left} 个字符）'],
  'text.cut': ['cut', '已截断'],

  'directory.absolute': ['Enter the absolute path of a directory.', '请输入目录的绝对路径。'],
  'directory.title': ['Choose a directory', '选择目录'],
  'directory.path': ['Path', '路径'],
  'directory.up': ['One level up', '上一级'],
  'directory.empty': ['There are no directories in here. You can still choose it.', '这里没有子目录，但仍可以选择它。'],
  'directory.use': ['Use this directory', '使用此目录'],
  'directory.fresh': ['New directory in here', '在此新建目录'],
  'directory.fresh.hint': ['Optional. It is made when it is first used.', '可选。首次使用时创建。'],
  'directory.badName': ['A name, without /.', '请输入不含 / 的名称。'],
  'directory.use.fresh': ['Use the new directory', '使用新目录'],
  'directory.truncated': ['Only the beginning of a long list is shown. Type the path instead.', '列表过长，只显示开头部分。请直接输入路径。'],
};
