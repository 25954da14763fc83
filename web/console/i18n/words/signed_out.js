// Texts of the page for browsers that are not signed in: [English, Chinese].

export default {
  'out.title': ['You are not signed in', '你尚未登录'],
  'out.signed-out': ['This browser has not signed in to Cofferdam yet, or its sign-in has expired.', '此浏览器尚未登录 Cofferdam，或登录已过期。'],
  'out.link-spent': ['This link was used already, or is older than ten minutes.', '此链接已被使用，或已超过十分钟。'],
  'out.how': ['In a terminal, run the following, and open the link it prints:', '请在终端运行以下命令，并打开它给出的链接：'],
  'elsewhere.title': ['Another page led here', '你是从其他页面来到这里的'],
  'elsewhere.text': [
    'A link on a page of somebody else leads to this console. If you wanted to come here, go on; if not, close this page.',
    '其他网站页面上的链接指向了这个控制台。如果你确实想来这里，请继续；否则请关闭此页面。',
  ],
  'elsewhere.go': ['Go on', '继续'],
  'out.once': ['A link works once, within ten minutes.', '链接在十分钟内有效，只能使用一次。'],
};
